"""The intake checks each reading against the contract of its pipeline."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.daemon_process import held_run, here
from tests.support.document_server import DocumentServer


def write(folder: Path, url: str, contract: str = "") -> Path:
    (folder / "drop").mkdir(exist_ok=True)
    config = folder / "ingestd.yaml"
    indented = "\n".join(f"    {line}" for line in contract.splitlines())
    config.write_text(f"""
service: {{url: "{url}", api_key: test-key}}
state: var/ingestd.db
pipelines:
  - name: bench
    source: {{connector: directory, path: drop, pattern: "*.csv", settle_seconds: 0}}
    entries: {{key: "{{part}}.mass", value: "{{mass kg}}"}}
    sink: {{workspace: Bench, label: Masses}}
{indented}
""")
    return config


ROWS = "part,mass kg,date,state\n" + "".join(
    f"{n:05},{n}.50,2026-01-{n:02},{'open' if n % 2 else 'done'}\n" for n in range(1, 21)
)


CONTRACT = (
    "contract: {columns: {part: {filled: true}, mass kg: {type: decimal}, date: {type: date, filled: true}, state: {}}}"
)


def test_a_file_that_differs_from_the_contract_is_rejected_with_its_records(
    tmp_path: Path, server: DocumentServer
) -> None:
    write(tmp_path, server.url, CONTRACT)
    (tmp_path / "drop" / "a.csv").write_text(ROWS)
    (tmp_path / "drop" / "b.csv").write_text(
        'part,mass kg,date,state,new\n00030,"1,5",2026-02-01,open,x\n00031,1,,open,x\n'
    )
    (tmp_path / "drop" / "c.csv").write_text("part,mass kg\n00040,1\n")
    sync = here(tmp_path, "sync")
    assert "20 entries delivered" in sync.stdout, sync.stdout + sync.stderr
    rejected = here(tmp_path, "rejected", "list")
    assert "'mass kg' is '1,5'; the contract needs the type decimal." in rejected.stdout
    assert "'date' is empty; the contract needs a value." in rejected.stdout
    assert "The source has no columns 'date', 'state', which the contract has." in rejected.stdout


HOLDING = "contract: {new: hold, missing: hold, retyped: hold, columns: {part: {}, mass kg: {type: decimal}}}"


def values(server: DocumentServer) -> dict[str, str | None]:
    return {key: value for key, (value, _) in server.values("Masses").items()}


def test_a_first_reading_that_breaks_the_contract_is_held_until_it_is_approved(
    tmp_path: Path, server: DocumentServer
) -> None:
    write(tmp_path, server.url, HOLDING)
    drop = tmp_path / "drop" / "a.csv"
    drop.write_text("part,mass kg,unit\na,1,kg\nb,n/a,kg\n")
    assert here(tmp_path, "sync").returncode == 8
    assert not server.store.by_label("Masses"), "not even the sink is created"
    found = held_run(tmp_path)
    assert found["reasons"][:2] == ["Column 'unit' is new.", "Column 'mass kg' is text now: row 3 has 'n/a'."]
    assert (found["created"], found["state"]) == (2, "held")
    assert "Column 'unit' is new." in here(tmp_path, "why", "a.csv").stdout

    assert here(tmp_path, "approve", str(found["run"])).returncode == 0
    assert here(tmp_path, "sync").returncode == 0
    assert values(server) == {"a.mass": "1", "b.mass": "n/a"}

    # The approval is for these values only.
    drop.write_text("part,mass kg,unit\na,2,kg\nb,n/a,kg\n")
    assert here(tmp_path, "sync").returncode == 8
    assert held_run(tmp_path)["updated"] == 1
    write(tmp_path, server.url, HOLDING.replace("{type: decimal}", "{}, unit: {}"))
    assert here(tmp_path, "sync").returncode == 0, "a renewed contract ends the hold"
    assert values(server) == {"a.mass": "2", "b.mass": "n/a"}


def test_a_column_that_the_mapping_needs_rejects_the_file_in_spite_of_hold(
    tmp_path: Path, server: DocumentServer
) -> None:
    write(tmp_path, server.url, HOLDING)
    (tmp_path / "drop" / "a.csv").write_text("part\na\n")
    assert here(tmp_path, "sync").returncode == 3
    assert "There is no column 'mass kg'" in here(tmp_path, "rejected", "list").stdout


def test_hold_is_refused_for_a_log(tmp_path: Path) -> None:
    config = write(tmp_path, "http://127.0.0.1:9", HOLDING)
    text = config.read_text().replace("connector: directory", "connector: log").replace(", settle_seconds: 0", "")
    config.write_text(text)
    run = here(tmp_path, "check", "--configuration-only")
    assert run.returncode == 78
    assert "A contract with hold needs whole readings, but this source is read incrementally." in run.stderr


def test_a_repeated_key_names_both_locations_in_the_status(tmp_path: Path, server: DocumentServer) -> None:
    write(tmp_path, server.url, "contract: {columns: {part: {}, mass kg: {}}}")
    (tmp_path / "drop" / "a.csv").write_text("part,mass kg,colour\na,1,red\nb,1,red\na,2,red\n")
    assert here(tmp_path, "sync").returncode == 0
    status = json.loads(here(tmp_path, "status", "--json").stdout)
    ((partition, notice),) = ((one["partition"], one["sentence"]) for one in status["pipelines"][0]["notices"])
    assert partition == "a.csv"
    assert "The contract has no column 'colour'." in notice
    assert (
        "'a.mass' has different values: '1' at a.csv, row 2 and '2' at a.csv, row 4; the last one is delivered."
        in notice
    )
    with closing(sqlite3.connect(tmp_path / "var" / "ingestd.db")) as state:
        (value,) = state.execute("SELECT value FROM entry WHERE key = 'a.mass'").fetchone()
    assert value == "2"


def test_a_notice_remains_until_its_file_is_read_again(tmp_path: Path) -> None:
    def sync_and_read() -> tuple[str, list[str]]:
        run = here(tmp_path, "sync")
        assert run.returncode == 0, run.stderr
        lines = here(tmp_path, "status").stdout.splitlines()
        return run.stdout, [line for line in lines if " has different values: " in line]

    with DocumentServer() as server:
        server.workspace("Bench")
        write(tmp_path, server.url)
        drop = tmp_path / "drop"
        for name in ("a", "b", "c"):
            (drop / f"{name}.csv").write_text(f"part,mass kg\n{name},1\n{name},2\n")
        printed, noticed = sync_and_read()
        assert printed.count("the last one is delivered.") == 3
        assert [line.split(", read ")[0] for line in noticed] == [f"pipeline bench: {name}.csv" for name in "cba"]
        (drop / "d.csv").write_text("part,mass kg\nd,1\n")
        (drop / "a.csv").write_text("part,mass kg\na,3\n")
        _, noticed = sync_and_read()
        assert [line.split(", read ")[0] for line in noticed] == ["pipeline bench: c.csv", "pipeline bench: b.csv"]
        why = here(tmp_path, "why", "drop/c.csv").stdout
        assert "notice: 'c.mass' has different values: '1' at c.csv, row 2 and '2' at c.csv, row 3" in why
