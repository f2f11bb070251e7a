"""`ingestd rejected`: lists with or without a daemon, and retries and drops through the daemon that holds the file."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

from ingestd.daemon.exit_codes import ExitCode
from tests.support.document_server import DocumentServer, Refuse
from tests.support.engineering_folder import Folder, program_beside_workspaced
from tests.support.golden_texts import check_command_output

BUDGET = 'part,mass,note\n00417,0.10,\n00418\n,9,"two\nlines, é"\n00419,1e-7,\n'


def refuse(server: DocumentServer, *keys: str) -> None:
    """Reject these keys, accept all others."""

    def fault(request: object) -> Refuse | None:
        sent = getattr(request, "body", b"")
        bad = any(f'"{key}"'.encode() in sent for key in keys) and getattr(request, "writes", False)
        return Refuse(status=422, headers={"X-Request-Id": "req-4711"}, body=b'{"error":"Too heavy"}') if bad else None

    server.fault_of = fault


def test_the_name_of_an_unreadable_file_is_printed_once(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", format: {type: json, records: parts}")
    folder.write("[1]", "parts.json")
    sync = folder.here("sync")
    listed = folder.here("rejected", "list").stdout
    status = folder.here("status").stdout
    for place, text in (("budget: parts.json", sync.stderr), ("1  budget · parts.json", listed)):
        assert f"{place}: " in text
        assert "parts.json: parts.json" not in text
    assert "rejected budget · parts.json: " in status
    assert sync.returncode == 3, "a bad file is a rejection, not a failed source"
    assert "parts.json: parts.json" not in status


def test_rejected_records_are_listed_and_shown_unchanged(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    folder.write(BUDGET)
    folder.write("mass\n1\n", "strange.csv")
    assert folder.here("sync").returncode == 3
    check_command_output("rejected-list", folder.here("rejected", "list").stdout)
    check_command_output("rejected-show", folder.here("rejected", "show", "--pipeline", "budget").stdout)
    shown = json.loads(folder.here("rejected", "show", "--file", "budget.csv", "--json", "2").stdout)
    assert shown["record"] == {"part": "", "mass": "9", "note": "two\nlines, é"}
    assert (shown["partition"], shown["position"], shown["attempts"]) == ("budget.csv", 4, [])
    assert folder.here("rejected", "show", "99").returncode == 1
    assert folder.here("rejected", "show").returncode == 2
    assert "--after 1 shows the next" in folder.here("rejected", "list", "--limit", "1").stdout
    assert folder.here("rejected", "list", "--reason", "no such reason").stdout == "No rejection matches.\n"


def test_exported_records_can_be_corrected_by_hand_and_dropped_again(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    folder.write(BUDGET)
    assert folder.here("sync").returncode == 3
    exported = folder.here("rejected", "export", "-o", str(tmp_path / "bad.csv"))
    assert exported.stderr == "2 records written.\n"
    text = (tmp_path / "bad.csv").read_bytes().decode()
    check_command_output("rejected-export", text.replace("\r\n", "\n"))
    rows = list(csv.DictReader(io.StringIO(text)))
    rows[0]["mass"], rows[1]["part"] = "0.2", "00500"
    with (folder.path / "fixed.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (folder.path / "fixed.csv").rename(folder.drop / "fixed.csv")
    folder.here("sync")
    assert {key: value for key, (value, _) in server.values("Budget").items()} == {
        "00417.mass": "0.10", "00418.mass": "0.2", "00419.mass": "1e-7", "00500.mass": "9",
    }  # fmt: skip
    lines = folder.here("rejected", "export", "--format", "ndjson").stdout.splitlines()
    assert [json.loads(line)["_row"] for line in lines] == [3, 4]


def test_an_export_that_fails_changes_no_file(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    folder.write("part,mass\n" + "".join(f",{number}\n" for number in range(2_000)))
    folder.here("sync")
    exported = tmp_path / "bad.csv"
    exported.write_text("earlier")
    command = (sys.executable, "-m", "ingestd", "rejected", "export", "-o", str(exported))
    small = ("sh", "-c", 'ulimit -f 128; exec "$@"', "sh")  # 64 KiB, which the file of an export exceeds
    failed = subprocess.run(
        (*small, *command), cwd=folder.path, capture_output=True, text=True, check=False, timeout=60
    )
    assert failed.returncode == ExitCode.OUTPUT_UNWRITABLE
    assert failed.stderr == f"{exported} can't be written: File too large.\n"
    assert exported.read_text() == "earlier"
    assert [file.name for file in tmp_path.iterdir() if file.is_file() and "ingestd" not in file.name] == ["bad.csv"]


def test_a_rejected_entry_is_sent_again_by_the_running_daemon(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    refuse(server, "00418.mass")
    folder.write("part,mass\n00417,0.10\n00418,99999\n")
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("entries_rejected", entries=1)
        folder.here("rejected", "retry", "--all")
        daemon.wait_for("rejections_retried", entries=1)
        daemon.wait_for("entries_rejected", nth=2)
        check_command_output("rejected-entry", folder.here("rejected", "show", "--key", "00418.*").stdout)
        server.fault_of = None
        retried = folder.here("rejected", "retry", "--key", "00418.mass")
        assert retried.stdout == "Pending again: 1 entry. The daemon sends it now.\n"
        daemon.wait_for("entries_delivered", nth=2)
        assert folder.here("rejected", "list").stdout == "Nothing is rejected.\n"
        assert daemon.stop() == 0
    assert server.values("Budget")["00418.mass"][0] == "99999"


def test_a_record_is_mapped_again_immediately_by_the_daemon_that_watches_its_file(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(tmp_path, server)
    folder.write(BUDGET)
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged")
        before = len(daemon.events)
        retried = folder.here("rejected", "retry", "--file", "budget.csv", "--reason", "header names")
        assert "Mapped again when budget is read next: 1 record." in retried.stdout
        again = daemon.wait_for("partition_read", rejected=1)
        assert daemon.events.index(again) > before
        assert (again["created"], again["unchanged"]) == (0, 0), "only the retried record is mapped"
        rejection = json.loads(folder.here("rejected", "list", "--json").stdout.splitlines()[0])
        assert (rejection["times"], rejection["retried"]) == (2, False)
        assert daemon.stop() == 0


def test_dropped_records_are_gone_and_the_log_has_the_actor(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    folder.write(BUDGET)
    with folder.daemon() as daemon:
        daemon.wait_for("records_rejected")
        dropped = folder.here("rejected", "drop", "1")
        check_command_output("rejected-drop", dropped.stdout)
        event = daemon.wait_for("rejections_dropped", rejections=1)
        assert (event["chosen"], event["level"]) == ("number 1", "warning")
        assert event["by"]
        assert daemon.stop() == 0
    assert folder.here("rejected", "drop").returncode == 2
    here = folder.here("rejected", "drop", "--all")
    assert json.loads(here.stderr)["event"] == "rejections_dropped", "without a daemon the command's own log has it"
    assert folder.here("rejected", "list").stdout == "Nothing is rejected.\n"


def test_the_oldest_rejections_beyond_the_limit_are_deleted_and_this_is_reported(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(tmp_path, server, top="rejected: {keep_days: 30, keep_rows: 3}")
    with folder.daemon() as daemon:
        folder.write("part,mass\n" + ",1\n,2\n,3\n,4\n,5\n")
        event = daemon.wait_for("rejections_forgotten")
        assert (event["rejections"], event["keep_rows"], event["level"]) == (2, 3, "warning")
        assert daemon.stop() == 0
    status = folder.here("status").stdout
    assert "3 rejected." in status
    assert "2 rejections deleted because of rejected.keep_days and rejected.keep_rows, most recently 20" in status


def test_a_rejection_of_the_real_service_has_its_message_and_its_request(tmp_path: Path) -> None:
    with program_beside_workspaced(tmp_path / "data") as service:
        folder = Folder(tmp_path / "here", service)
        folder.write("part,mass\n00417,0.10\n" + "x" * 2000 + ",1\n")
        assert folder.here("sync").returncode == 3
        (line,) = folder.here("rejected", "list", "--json").stdout.splitlines()
        shown = json.loads(folder.here("rejected", "show", "--json", str(json.loads(line)["id"])).stdout)
        (attempt,) = shown["attempts"]
        assert shown["subject"] == "entry"
        assert attempt["request_id"], "the service's operator can look it up"
        assert attempt["words"] == shown["reason"]
        assert service.values() == {"00417.mass": "0.10"}


def test_a_missing_state_file_is_reported(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    for words in (("list",), ("retry", "--all"), ("drop", "--all")):
        run = folder.here("rejected", *words)
        assert run.returncode == 74
        assert "there is no state file" in run.stderr
    assert not (tmp_path / "var").exists()
