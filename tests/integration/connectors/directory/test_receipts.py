"""What a user finds beside a file: its receipt, the dated folder, and the reason of a failure."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any

import openpyxl
import pytest
from pydantic import ValidationError

from connectors.directory import DirectoryOptions
from connectors.files.receipt import MOST_LISTED
from ingestd.core.record import Partition
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.telemetry.catalogue.intake import AcknowledgementFailed
from tests.support.file_flow import FileFlow

Open = Callable[..., FileFlow]
TEXT = "part;mass\nA;1\n;2\nC;3\n"


def test_a_receipt_describes_the_outcome_of_a_file(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", TEXT)
    flow.pass_once()
    receipt = flow.receipt("a.csv")
    assert next(iter(receipt)) == "summary"
    assert receipt["summary"] == (
        "a.csv: 3 rows read, entries: 2 created; 1 rejected. It is archived as done/a.csv. The rejected rows are in"
        " done/rejected/a.csv.rejected.csv: correct them and drop that file."
    )
    assert (receipt["sha256"], receipt["size"]) == (hashlib.sha256(TEXT.encode()).hexdigest(), len(TEXT))
    assert (receipt["rows"], receipt["entries"]) == (3, {"created": 2, "updated": 0, "unchanged": 0, "removed": 0})
    assert receipt["rejected"]["listed"] == [
        {"row": 3, "reason": "'part' is empty; the key '{part}' needs it.", "field": "part"}
    ]
    assert receipt["found"] == {"encoding": "utf-8", "delimiter": "semicolon", "header_row": "1"}
    assert (receipt["pipeline"], receipt["sink"], receipt["run"]) == ("flow", "Masses in bench", 1)
    assert datetime.fromisoformat(receipt["ended"]).timestamp() == flow.now
    assert len(receipt["configuration"]) == 64


def test_each_reading_has_its_own_receipt_with_its_changes(open_flow: Open) -> None:
    flow = open_flow()
    for text in ("part,mass\nA,1\nB,1\n", "part,mass\nA,2\nB,1\nC,1\n", "part,mass\nA,2\nB,1\nC,1\n"):
        flow.write("a.csv", text)
        flow.pass_once()
    assert flow.receipt("a~2.csv")["entries"] == {"created": 1, "updated": 1, "unchanged": 0, "removed": 0}
    third = flow.receipt("a~3.csv")
    assert third["rows"] is None
    assert third["summary"].startswith("a.csv has the same content as when it was read before; nothing had to be sent.")


def test_a_rejection_by_the_service_is_in_the_receipt_with_its_message(open_flow: Open) -> None:
    flow = open_flow()
    flow.refuses = {"3"}
    flow.write("a.csv", TEXT)
    flow.pass_once()
    assert flow.receipt("a.csv")["rejected"]["listed"][1] == {
        "row": 4, "reason": "Too heavy, says the service.", "key": "C", "status": 422,
    }  # fmt: skip


def test_a_receipt_lists_the_first_rejected_rows_and_counts_the_others(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\n" + ",1\n" * (MOST_LISTED + 7))
    flow.pass_once()
    rejected = flow.receipt("a.csv")["rejected"]
    assert (rejected["count"], len(rejected["listed"]), rejected["more"]) == (MOST_LISTED + 7, MOST_LISTED, 7)
    assert len((flow.done / "rejected" / "a.csv.rejected.csv").read_text().splitlines()) == MOST_LISTED + 8


def test_receipts_and_reasons_are_never_read_as_data(open_flow: Open) -> None:
    flow = open_flow(after="keep", archive=None, receipts="drop", pattern="*")
    flow.write("a.csv", TEXT)
    flow.write("b.csv.reason.txt", "part,mass\nR,1\n")
    flow.pass_once()
    assert "a.csv.receipt.json" in flow.files(flow.drop)
    assert [run.records for run in flow.pass_once().read] == []
    assert flow.held == {"A": "1", "C": "3"}


def test_receipts_can_be_written_to_another_folder_or_disabled(open_flow: Open) -> None:
    flow = open_flow(receipts="receipts", archive_folders="year")
    flow.write("x.csv", "part,mass\nA,1\n")
    flow.pass_once()
    year = datetime.fromtimestamp(flow.now).astimezone().strftime("%Y")
    assert flow.files(flow.base / "receipts") == [f"{year}/x.csv.receipt.json"]
    flow.options["receipt"] = False
    flow.restart()
    flow.write("y.csv", "part,mass\nB,1\n")
    flow.pass_once()
    assert flow.files(flow.done) == [f"{year}/x.csv", f"{year}/y.csv"]


def test_archive_folders_are_named_by_the_day_of_the_reading(open_flow: Open) -> None:
    flow = open_flow(archive_folders="day", recursive=True)
    flow.write("sub/a.csv", TEXT)
    flow.pass_once()
    day = datetime.fromtimestamp(flow.now).astimezone().strftime("%Y/%m/%d")
    path = flow.done / day / "sub" / "a.csv"
    assert path.read_text() == TEXT
    assert (flow.done / "rejected" / "sub" / "a.csv.rejected.csv").exists()
    connector = flow.reader.connector
    assert connector.locate(path) == "sub/a.csv"  # type: ignore[attr-defined]
    assert connector.locate(flow.done / "rejected" / "sub" / "a.csv.rejected.csv") == "sub/a.csv"  # type: ignore[attr-defined]
    assert connector.locate(flow.done / "failed" / "sub" / "b.csv") == "sub/b.csv"  # type: ignore[attr-defined]
    state = flow.mirror.intake.open_partition("flow", Partition(name="sub/a.csv"), flow.reader.sink, flow.reader.digest)
    assert connector.describe_location("sub/a.csv", state.cursor) == f"it was archived as {path}"  # type: ignore[attr-defined]


def test_a_deletion_waits_for_its_grace_period_and_for_an_unchanged_file(open_flow: Open) -> None:
    flow = open_flow(after="delete", archive=None, delete_grace_seconds=60, receipts="receipts")
    path = flow.write("a.csv", TEXT)
    flow.pass_once()
    flow.now += 59
    flow.restart()
    flow.pass_once()
    assert path.exists()
    path.write_text("part;mass\nA;7\n")
    flow.now += 2
    flow.reader.acknowledge_partitions()
    assert path.exists(), "it has changed, so its present content is still unread"
    flow.pass_once()
    flow.now += 61
    flow.pass_once()
    assert not path.exists()
    assert flow.held == {"A": "7", "C": "3"}
    assert [event for event in flow.events if isinstance(event, AcknowledgementFailed)] == []


def test_a_marker_is_deleted_together_with_its_file(open_flow: Open) -> None:
    flow = open_flow(after="delete", archive=None, delete_grace_seconds=60, ready=["marker"])
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.write("a.csv.done", "")
    flow.pass_once()
    assert flow.held == {"A": "1"}
    assert flow.files(flow.drop) == ["a.csv", "a.csv.done"]
    flow.now += 61
    flow.pass_once()
    assert flow.files(flow.drop) == []


def test_each_folder_that_is_written_is_checked(open_flow: Open) -> None:
    flow = open_flow(quarantine="a file/rejected", receipts="receipts")
    (flow.base / "a file").write_text("")
    steps = {step.name: step for step in flow.reader.connector.verify()}  # type: ignore[attr-defined]
    assert (steps["quarantine"].outcome, steps["failed"].outcome, steps["receipts"].outcome) == (
        "failed",
        "passed",
        "passed",
    )
    assert "Not a directory. A part of its path is not a folder: correct the path." in steps["quarantine"].sentence


def test_an_unwritable_folder_is_reported_once_and_its_files_stay_read(
    open_flow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = open_flow()
    path = flow.write("a.csv", TEXT)
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda _, mode, **__: mode != os.W_OK | os.X_OK)  # root may write everywhere
        flow.pass_once()
        flow.reader.acknowledge_partitions()
        flow.restart()
        assert flow.pass_once().read == ()
        assert path.exists()
        assert not flow.done.exists()
        first, second = [event for event in flow.events if isinstance(event, AcknowledgementFailed)]
        assert "can't be moved: its folder can't be written to" in first.sentence
        assert first == second, "once by each process"
    flow.pass_once()
    assert flow.files(flow.done) == ["a.csv", "a.csv.receipt.json", "rejected/a.csv.rejected.csv"]


def test_a_file_that_cannot_be_moved_is_reported_once_for_each_reason(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.done.write_text("a file where the archive should be")
    for _ in range(3):
        flow.pass_once()
    assert len([event for event in flow.events if isinstance(event, AcknowledgementFailed)]) == 1
    flow.done.unlink()
    flow.pass_once()
    assert flow.files(flow.done) == ["a.csv", "a.csv.receipt.json"]


# -------------------------------------------------------------------------------------------------- unreadable files


def test_an_unreadable_file_is_moved_to_its_folder_with_its_reason(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,part\nA,1\n")
    report = flow.pass_once()
    assert flow.files(flow.drop) == []
    assert flow.files(flow.done) == ["failed/a.csv", "failed/a.csv.reason.txt"]
    reason = (flow.done / "failed" / "a.csv.reason.txt").read_text()
    assert report.rejected[0].removeprefix("a.csv: ") in reason
    assert reason.startswith("a.csv could not be read.")
    assert flow.rejected() == [("a.csv", None)]
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.pass_once()
    assert (flow.held, flow.rejected()) == ({"A": "1"}, [])
    assert flow.files(flow.done) == ["a.csv", "a.csv.receipt.json", "failed/a.csv", "failed/a.csv.reason.txt"]


def test_a_file_that_only_the_mapping_rejects_is_kept_because_the_mapping_may_be_wrong(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,weight\nA,1\n")
    flow.pass_once()
    assert flow.files(flow.drop) == ["a.csv"]
    assert not (flow.done / "failed").exists()


def test_an_unreadable_file_is_kept_if_files_are_kept(open_flow: Open) -> None:
    flow = open_flow(after="keep", archive=None, failed="broken")
    flow.write("a.csv", "part,part\nA,1\n")
    flow.pass_once()
    assert flow.files(flow.base / "drop") == ["a.csv"]


def test_unreadable_files_can_be_moved_although_acknowledged_ones_are_deleted(open_flow: Open) -> None:
    flow = open_flow(after="delete", archive=None, failed="broken")
    flow.write("a.csv", "part,part\nA,1\n")
    flow.write("b.csv", "part,mass\nB,1\n")
    flow.pass_once()
    assert flow.files(flow.drop) == []
    assert flow.files(flow.base / "broken") == ["a.csv", "a.csv.reason.txt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quarantine": "drop"}, "quarantine must be another folder than path"),
        ({"failed": "drop"}, "failed must be another folder than path"),
        ({"delete_grace_seconds": 5}, "delete_grace_seconds is for after: delete"),
    ],
)
def test_contradictory_settings_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        DirectoryOptions.model_validate({"path": "drop"} | options)


def test_records_before_an_error_in_xml_are_delivered(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.xml", "<r><row><part>A</part><mass>1</mass></row><row><part>B</part><mass>2</mass></row><row><part>")
    report = flow.pass_once()
    assert report.rejected == (
        "a.xml: a.xml is not well-formed XML: no element found: line 1, column 92. The records before that (2) were read.",
    )
    assert flow.held == {"A": "1", "B": "2"}


def test_a_receipt_reports_ignored_parts_of_a_sheet(open_flow: Open) -> None:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["part", "mass", None], ["A", 1, "old"]):
        book.worksheets[0].append(row)
    book.save(out)
    flow = open_flow()
    flow.write("a.xlsx", out.getvalue())
    flow.pass_once()
    sentence = "C2 holds a value after the last column that the header names. Such cells are not read. Name the column."
    receipt = flow.receipt("a.xlsx")
    assert receipt["found"]["notice"] == sentence
    assert receipt["summary"].endswith(f"It is archived as done/a.xlsx. {sentence}")


def test_a_guessed_encoding_is_in_the_receipt_and_the_status_and_logged_once(open_flow: Open) -> None:
    flow = open_flow()
    for name in ("a.csv", "b.csv"):
        flow.write(name, f"part,mass,größe\n{name},1,weiß\n", encoding="cp1252")
    flow.pass_once()
    sentence = (
        "Its encoding is a guess: windows-1252. If letters are wrong, set encoding: the file is then read again. If it was"
        " archived, also drop it again."
    )
    for name in ("a.csv", "b.csv"):
        receipt = flow.receipt(name)
        assert receipt["found"]["encoding_guessed"] == "yes"
        assert sentence in receipt["summary"]
    assert flow.notices == [f"a.csv: {sentence}"]
    with closing(SqliteMirror.observe(flow.base / "ingestd.db")) as observer:
        (pipeline,) = observer.pipelines()
    assert pipeline.notices[0].sentence == sentence
