"""`ingestd infer` prints a contract; the intake checks each reading against it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.daemon_process import ingestd
from tests.support.document_server import DocumentServer
from tests.support.golden_texts import check_command_output


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


def test_the_inferred_contract_is_accepted_and_rejects_what_differs(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write(tmp_path, server.url)
        (tmp_path / "drop" / "a.csv").write_text(ROWS)
        run = ingestd(tmp_path, "infer", "bench", "-c", str(config))
        assert (run.returncode, run.stderr) == (0, "")
        check_command_output("infer", run.stdout)
        assert not (tmp_path / "var").exists()
        assert [path.name for path in (tmp_path / "drop").iterdir()] == ["a.csv"]

        write(tmp_path, server.url, run.stdout)
        (tmp_path / "drop" / "b.csv").write_text(
            'part,mass kg,date,state,new\n00030,"1,5",2026-02-01,open,x\n00031,1,,open,x\n'
        )
        (tmp_path / "drop" / "c.csv").write_text("part,mass kg\n00040,1\n")
        sync = ingestd(tmp_path, "sync", "-c", str(config))
        assert "20 entries delivered" in sync.stdout, sync.stdout + sync.stderr
        rejected = ingestd(tmp_path, "rejected", "list", "-c", str(config))
        assert "'mass kg' is '1,5'; the contract needs the type decimal." in rejected.stdout
        assert "'date' is empty; the contract needs a value." in rejected.stdout
        assert "The source has no columns 'date', 'state', which the contract has." in rejected.stdout


def test_hold_is_refused_and_the_source_may_be_away(tmp_path: Path) -> None:
    config = write(tmp_path, "http://127.0.0.1:9", "contract: {new: hold, columns: {part: {}}}")
    run = ingestd(tmp_path, "infer", "bench", "-c", str(config))
    assert run.returncode == 78
    assert "hold is not available for a contract yet" in run.stderr
    config = write(tmp_path, "http://127.0.0.1:9")
    assert ingestd(tmp_path, "infer", "bench", "-c", str(config)).returncode == 5
    unknown = ingestd(tmp_path, "infer", "bnech", "-c", str(config))
    assert (unknown.returncode, "Did you mean 'bench'?" in unknown.stderr) == (2, True)


def test_a_repeated_key_names_both_locations_in_the_status(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write(tmp_path, server.url, "contract: {columns: {part: {}, mass kg: {}}}")
        (tmp_path / "drop" / "a.csv").write_text("part,mass kg,colour\na,1,red\nb,1,red\na,2,red\n")
        assert ingestd(tmp_path, "sync", "-c", str(config)).returncode == 0
        status = json.loads(ingestd(tmp_path, "status", "--json", "-c", str(config)).stdout)
        notice = status["pipelines"][0]["notice"]
        assert "The contract has no column 'colour'." in notice
        assert "'a.mass' has different values: '1' at 2 and '2' at 4; the last one is delivered." in notice
        with closing(sqlite3.connect(tmp_path / "var" / "ingestd.db")) as state:
            (value,) = state.execute("SELECT value FROM entry WHERE key = 'a.mass'").fetchone()
        assert value == "2"
