"""`ingestd cursor`: show, set, rewind and reset, with and without a running daemon. Equal values are not sent again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.daemon_process import here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer
from tests.support.golden_texts import check_command_output


def shown(folder: Path, pipeline: str) -> list[dict[str, object]]:
    run = here(folder, "cursor", "show", pipeline, "--json")
    assert run.returncode == 0, run.stderr
    found: list[dict[str, object]] = json.loads(run.stdout)
    return found


def test_a_reset_partition_is_read_again_and_nothing_is_sent(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    assert here(tmp_path, "sync").returncode == 0
    text = here(tmp_path, "cursor", "show", "p0")
    check_command_output("cursor-show", text.stdout)
    reset = here(tmp_path, "cursor", "reset", "p0", "--all")
    assert reset.returncode == 0, reset.stderr
    check_command_output("cursor-reset", reset.stdout)
    assert [one["cursor"] for one in shown(tmp_path, "p0")] == [None]
    again = here(tmp_path, "sync")
    assert again.returncode == 0
    assert "0 entries delivered" in again.stdout
    assert [one["cursor"] for one in shown(tmp_path, "p0")] == [{"upto": 3}]


def test_a_daemon_resets_and_reads_at_once(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        daemon.wait_for("partition_acknowledged", partition="numbers")
        reset = here(tmp_path, "cursor", "reset", "p0", "numbers")
        assert (reset.returncode, reset.stderr) == (0, "")
        daemon.wait_for("cursor_moved", pipeline="p0", partition="numbers", action="reset")
        daemon.wait_for("partition_acknowledged", partition="numbers", nth=2)
        assert daemon.stop() == 0


def test_set_stores_json_and_mistakes_are_2(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    assert here(tmp_path, "sync").returncode == 0
    for arguments, sentence in (
        (("set", "p0", "numbers", "[1]"), "A cursor is a JSON object"),
        (("set", "p0", "numbers", "{"), "The cursor is no JSON"),
        (("set", "p0", "number", "{}"), "Did you mean 'numbers'?"),
        (("reset", "p1", "--all"), "There is no pipeline 'p1'"),
        (("reset", "p0"), "use --all"),
    ):
        run = here(tmp_path, "cursor", *arguments)
        assert (run.returncode, sentence in run.stderr) == (2, True), run.stderr
    refused = here(tmp_path, "cursor", "rewind", "p0", "numbers", "5")
    assert refused.returncode == 75
    assert "ingestd cursor reset p0" in refused.stderr
    moved = here(tmp_path, "cursor", "set", "p0", "numbers", '{"upto": 2}')
    assert moved.returncode == 0, moved.stderr
    assert [one["cursor"] for one in shown(tmp_path, "p0")] == [{"upto": 2}]


def test_a_database_without_a_cursor_column_can_only_be_reset(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "pdm.db")) as database, DocumentServer() as server:
        server.workspace("Bench")
        database.execute("CREATE TABLE part (number TEXT PRIMARY KEY, mass TEXT, changed INTEGER)")
        database.executemany("INSERT INTO part VALUES (?, ?, ?)", [(f"p{n}", str(n), n) for n in range(5)])
        database.commit()
        config = tmp_path / "ingestd.yaml"
        config.write_text(f"""
service: {{url: "{server.url}", api_key: test-key}}
state: var/ingestd.db
pipelines:
  - name: pdm
    source: {{connector: database, url: "sqlite:///pdm.db", table: part, mode: changes, key: number}}
    entries: {{key: "{{number}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Parts}}
    schedule: {{every: 1h}}
""")
        assert here(tmp_path, "sync").returncode == 0
        refused = here(tmp_path, "cursor", "rewind", "pdm", "part", "2")
        assert refused.returncode == 75
        check_command_output("cursor-rewind-refused", refused.stderr)
        assert here(tmp_path, "cursor", "reset", "pdm", "part").returncode == 0
        again = here(tmp_path, "sync")
        assert "0 entries delivered" in again.stdout
