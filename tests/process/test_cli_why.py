"""`ingestd why`: the sentence for each state of a file, with a daemon and without one."""

from __future__ import annotations

import getpass
import json
import os
import re
from pathlib import Path

from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder, timeless
from tests.support.golden_texts import check_command_output

GOOD = "part,mass\nA,0.10\nB,2\n"


def ownerless(text: str, folder: Folder) -> str:
    """Return the text without what differs between machines and runs."""
    text = re.sub(r"still empty in \d+ seconds", "still empty in <some> seconds", text)
    return text.replace(f"file owner {getpass.getuser()},", "file owner <owner>,").replace(str(folder.path), "<folder>")


def explanations_of(folder: Folder, *names: str) -> str:
    return ownerless("".join(folder.here("why", str(folder.drop / name)).stdout for name in names), folder)


def test_the_outcome_of_files_is_reported_without_a_daemon(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", after: archive, archive: done, recursive: true")
    folder.write(GOOD)
    folder.write("part,mass\nC,1\nD\n", "bad-row.csv")
    assert folder.here("sync").returncode == 3
    folder.write(GOOD, "twin.csv")
    folder.write("mass\n1\n", "strange.csv")
    folder.write("part,mass\n", "photo.png")
    (folder.drop / "late.csv").write_text("")
    (folder.drop / ".hidden.csv").write_text(GOOD)
    (folder.drop / "link.csv").symlink_to("strange.csv")
    assert folder.here("sync").returncode == 3
    names = ["budget.csv", "bad-row.csv", "twin.csv", "strange.csv", "late.csv", "photo.png", ".hidden.csv", "link.csv"]
    check_command_output("why", explanations_of(folder, *names))
    assert folder.here("why", "budget.csv").stdout == folder.here("why", str(tmp_path / "done" / "budget.csv")).stdout
    unknown = folder.here("why", "nothing.csv")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "knows 'nothing.csv'" in unknown.stderr


def test_the_daemon_reports_what_a_file_waits_for(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", ready: [marker, sha256], canary: .mounted")
    (folder.drop / ".mounted").touch()
    folder.write(GOOD, "no-marker.csv")
    folder.write(GOOD, "no-checksum.csv")
    (folder.drop / "no-checksum.csv.done").touch()
    folder.write(GOOD, "other-checksum.csv")
    (folder.drop / "other-checksum.csv.done").touch()
    (folder.drop / "other-checksum.csv.sha256").write_text("0" * 64)
    with folder.daemon() as daemon:
        daemon.wait_for("partition_rejected")
        names = ["no-marker.csv", "no-checksum.csv", "other-checksum.csv", "no-checksum.csv.done"]
        text = explanations_of(folder, *names)
        (folder.drop / ".mounted").unlink()
        check_command_output("why-waiting", text + explanations_of(folder, "no-marker.csv"))
        assert daemon.stop() == 0


def test_a_file_without_a_mapped_column_is_reported_as_long_as_it_exists(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(tmp_path, server, after=", rescan_seconds: 0.05")
    folder.write("part,weight\nA,1\n")
    with folder.daemon() as daemon:
        daemon.wait_for("partition_rejected")
        folder.write(GOOD, "next.csv")
        daemon.wait_for("partition_acknowledged")  # and checked again since
        sentence = folder.here("why", str(folder.drop / "budget.csv")).stdout
        assert sentence.startswith("budget.csv can't be read, and is not read again until it changes.")
        assert "mass" in sentence
        assert len([event for event in daemon.events if event["event"] == "partition_rejected"]) == 1
        folder.write(GOOD)
        daemon.wait_for("partition_acknowledged", partition="budget.csv")
        assert daemon.stop() == 0


def test_a_saved_file_without_a_mapped_column_is_reported(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    text = folder.config.read_text().replace(
        "connector: directory, path: drop,", "connector: file, path: drop/one.csv,"
    )
    folder.config.write_text(text)
    folder.write("part,weight\nA,1\n", "one.csv")
    with folder.daemon() as daemon:
        daemon.wait_for("partition_rejected")
        assert "one.csv can't be read as it is." in folder.here("why", str(folder.drop / "one.csv")).stdout
        assert daemon.stop() == 0


def test_an_undecodable_name_is_reported_with_and_without_a_daemon(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    name = os.fsdecode(b"m\xfcller.csv")
    folder.write(GOOD, name)
    said = "m\\xfcller.csv is skipped: its name is not UTF-8; rename it."
    assert folder.here("why", str(folder.drop / name)).stdout == f"{said} No daemon runs, so nothing is read.\n"
    gone = folder.here("why", os.fsdecode(b"\xff.csv"))
    assert (gone.returncode, gone.stderr.count("Traceback")) == (1, 0)
    with folder.daemon() as daemon:
        assert folder.here("why", str(folder.drop / name)).stdout == f"{said}\n"
        assert daemon.stop() == 0


def test_a_file_that_cannot_be_archived_is_reported_with_reason_and_time(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(
        tmp_path, server, after=", after: archive, archive: disk/done, receipt: false, rescan_seconds: 0.05"
    )
    (tmp_path / "disk").write_text("not mounted")
    folder.write(GOOD)
    with folder.daemon() as daemon:
        daemon.wait_for("acknowledgement_failed")
        reason = f"{folder.drop}/budget.csv can't be archived in {tmp_path}/disk/done: Not a directory. A part of"
        why = folder.here("why", str(folder.drop / "budget.csv")).stdout
        assert f"all of it is delivered; it is still in {folder.drop} (tried since 20" in why
        assert f"UTC): {reason}" in why
        assert f"source budget: {reason}" in folder.here("status").stdout
        (notice,) = json.loads(folder.here("status", "--json").stdout)["notices"]
        assert notice["sentence"].startswith(reason)
        assert notice["since"] > 0
        (tmp_path / "disk").unlink()
        (tmp_path / "disk").mkdir()
        daemon.wait_for("partition_acknowledged")
        assert json.loads(folder.here("status", "--json").stdout)["notices"] == []
        assert daemon.stop() == 0


def test_a_file_that_another_pipeline_reads_is_not_reported_until_a_reload_removes_that_pipeline(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(tmp_path, server, after=", pattern: '*.csv', format: csv")
    alone = folder.config.read_text()
    pipeline = alone[alone.index("  - ") :]
    other = pipeline.replace("budget", "other", 1).replace("*.csv", "*.txt").replace("label: ", "label: Other ")
    folder.config.write_text(alone + other)
    folder.write(GOOD, "a.csv")
    folder.write(GOOD, "b.txt")
    assert "No pattern matches" not in folder.here("check").stdout
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged", partition="a.csv")
        daemon.wait_for("partition_acknowledged", partition="b.txt")
        assert "No pattern matches" not in folder.here("status").stdout
        folder.config.write_text(alone)
        assert folder.here("reload").returncode == 0
        folder.write(GOOD.replace("0.10", "0.20"), "a.csv")
        daemon.wait_for("partition_acknowledged", partition="a.csv", nth=2)
        assert "source budget: No pattern matches 1 file (b.txt)" in folder.here("status").stdout
        assert daemon.stop() == 0


def test_files_that_match_no_pattern_are_counted_by_status_and_check(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server)
    folder.write(GOOD, "RUN01.CSV")
    folder.write("notes", "readme.txt")
    sentence = "No pattern matches 1 file (readme.txt). Set pattern, and format if needed, to have"
    check = folder.here("check").stdout
    assert f"skipped files: {sentence}" in check
    assert "Matching the suffixes of the known formats: 1 file; still empty: 0." in check
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged", partition="RUN01.CSV")
        assert f"source budget: {sentence}" in folder.here("status").stdout
        assert daemon.stop() == 0


def test_a_reading_without_a_value_is_reported_as_that(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", after: archive, archive: done")
    folder.write('[{"part": "A", "mass": null}, {"part": "B", "mass": null}]', "silent.json")
    why = "2 records gave no value: 2 have no value in 'mass'"
    synced = folder.here("sync")
    assert synced.returncode == 0
    assert (
        f"silent.json: 2 records read: 0 created, 0 updated, 0 removed, no record gave a value. {why}." in synced.stdout
    )
    assert f"silent.json, read <moment>: {why}." in timeless(folder.here("status").stdout)
    folder.write("part,mass\nC,1\n", "good.csv")
    assert folder.here("sync").returncode == 0
    explained = folder.here("why", str(folder.drop / "silent.json")).stdout
    assert f"no record gave a value; notice: {why}; it has no value to deliver; it was archived" in explained
    assert "all of it is delivered" in folder.here("why", str(folder.drop / "good.csv")).stdout
    receipt = json.loads((tmp_path / "done" / "silent.json.receipt.json").read_text())
    assert (receipt["summary"].endswith(f"{why}."), receipt["without_value"]) == (True, 2)


def test_records_without_a_value_beside_others_are_counted(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", after: archive, archive: done")
    folder.write('[{"part": "A", "mass": 1}, {"part": "B"}]', "some.json")
    assert "some.json: 2 records read: 1 created, 0 updated, 0 removed, 1 without a value" in folder.here("sync").stdout
    assert "1 without a value" in folder.here("why", str(folder.drop / "some.json")).stdout
    receipt = json.loads((tmp_path / "done" / "some.json.receipt.json").read_text())
    assert receipt["summary"].startswith("some.json: 2 rows read, entries: 1 created; 1 without a value.")
