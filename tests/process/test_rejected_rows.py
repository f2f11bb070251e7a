"""A bad row with the real daemon: dropped, rejected, corrected, dropped again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.daemon_process import here, running_daemon
from tests.support.document_server import DocumentServer

QUARANTINED = "budget.csv.rejected.csv"


def configure(folder: Path, url: str) -> Path:
    (folder / "drop").mkdir()
    config = folder / "ingestd.yaml"
    config.write_text(
        f"""\
service: {{url: {url}, api_key: test-key, client_id: test}}
state: var/ingestd.db
pipelines:
  - name: mass
    source: {{connector: directory, path: drop, pattern: "*.csv", settle_seconds: 0, after: archive, archive: done}}
    entries: {{key: "{{part}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Mass}}
"""
    )
    return config


def drop(folder: Path, name: str, text: str) -> None:
    written = folder / "being-written"
    written.write_bytes(text.encode("cp1252"))
    written.rename(folder / "drop" / name)


def test_of_a_thousand_rows_three_are_rejected_two_corrected_and_one_rejected_again(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = configure(tmp_path, server.url)
    rows = [f"{'' if n in {10, 500, 999} else f'Teil-{n}'};{n},5;Größe {n}" for n in range(1, 1001)]
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY", "1")
        drop(tmp_path, "budget.csv", "\r\n".join(["part;mass;note", *rows, ""]))
        daemon.wait_for("partition_acknowledged", partition="budget.csv")
        assert len(server.values("Mass")) == 997

        receipt = json.loads((tmp_path / "done" / "budget.csv.receipt.json").read_bytes())
        assert (receipt["rows"], receipt["entries"]["created"], receipt["rejected"]["count"]) == (1000, 997, 3)
        assert [one["row"] for one in receipt["rejected"]["listed"]] == [11, 501, 1000]
        assert receipt["found"]["encoding"] == "windows-1252"
        assert receipt["rejected"]["rows_in"] == f"done/rejected/{QUARANTINED}"

        path = tmp_path / "done" / "rejected" / QUARANTINED
        text = path.read_bytes().decode("cp1252")
        assert text.splitlines()[0] == "part;mass;note;_reason;_row;_field;_origin"
        corrected = text.replace(";10,5;Größe 10", "Teil-10;10,5;Größe 10").replace(";500,5;", "Teil-500;500,5;")
        path.unlink()
        drop(tmp_path, QUARANTINED, corrected)
        daemon.wait_for("partition_acknowledged", partition=QUARANTINED)
        held = server.values("Mass")
        assert len(held) == 999
        assert (held["Teil-10"], held["Teil-500"]) == (("10,5", "scalar"), ("500,5", "scalar"))
        assert (tmp_path / "done" / QUARANTINED).read_bytes().decode("cp1252") == corrected
        assert len(path.read_bytes().splitlines()) == 2, "one row is left, and is rejected again"
        assert daemon.stop() == 0

    trace = here(tmp_path, "trace", "Teil-500", "-c", str(config))
    assert "which is row 501 of budget.csv" in trace.stdout
    status = here(tmp_path, "status", "-c", str(config))
    assert "1 rejected" in status.stdout, status.stdout
    listed = here(tmp_path, "rejected", "list", "-c", str(config))
    assert "which is row 1000 of budget.csv" in listed.stdout, listed.stdout
    assert "The row was resubmitted without a change: " in listed.stdout


def test_an_unreadable_file_is_moved_and_its_name_can_be_used_again(tmp_path: Path, server: DocumentServer) -> None:
    config = configure(tmp_path, server.url)
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY", "1")
        drop(tmp_path, "budget.csv", "part;part\nA;1\n")
        daemon.wait_for("partition_rejected", partition="budget.csv")
        drop(tmp_path, "other.csv", "part;mass\nB;2\n")
        daemon.wait_for("partition_acknowledged", partition="other.csv")
        assert sorted(path.name for path in (tmp_path / "done" / "failed").iterdir()) == [
            "budget.csv", "budget.csv.reason.txt",
        ]  # fmt: skip
        drop(tmp_path, "budget.csv", "part;mass\nA;1\n")
        daemon.wait_for("partition_acknowledged", partition="budget.csv")
        assert daemon.stop() == 0
    assert {key: value for key, (value, _) in server.values("Mass").items()} == {"A": "1", "B": "2"}
    assert "0 rejected" in here(tmp_path, "sync", "-c", str(config)).stdout
