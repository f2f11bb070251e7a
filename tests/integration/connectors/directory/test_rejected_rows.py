"""Files of rejected rows that a user can correct and drop again; only these rows are applied to the original file."""

from __future__ import annotations

import codecs
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connectors.directory import DirectoryConnector
from connectors.files.resubmission import RESERVED
from ingestd.core.record import Partition
from tests.support.file_flow import FileFlow

Open = Callable[..., FileFlow]
REJECTED = "a.csv.rejected.csv"


def correct(
    flow: FileFlow, name: str, change: Callable[[str], str], *, as_name: str = "", encoding: str = "utf-8"
) -> Path:
    """Change the text of a file of rejected rows, and drop it again."""
    path = flow.done / "rejected" / name
    text = path.read_bytes().decode(encoding)
    path.unlink()
    return flow.write(as_name or name, change(text), encoding)


def test_corrected_rows_are_applied_alone_and_uncorrected_ones_are_rejected_again(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\nA,1\n,2\nC,3\n,4\n,5\n")
    flow.pass_once()
    assert flow.held == {"A": "1", "C": "3"}
    assert flow.rejected() == [("a.csv", 6), ("a.csv", 5), ("a.csv", 3)]
    text = (flow.done / "rejected" / REJECTED).read_bytes().decode()
    header, *rows = text.splitlines()
    assert header == "part,mass,_reason,_row,_field,_origin"
    assert [row.split(",")[:2] for row in rows] == [["", "2"], ["", "4"], ["", "5"]]
    correct(flow, REJECTED, lambda text: text.replace("\r\n,2", "\r\nB,2").replace("\r\n,4", "\r\nD,4"))
    report = flow.pass_once()
    assert [(run.created, run.rejected) for run in report.read] == [(2, 1)]
    assert flow.held == {"A": "1", "B": "2", "C": "3", "D": "4"}
    ((partition, position),) = flow.rejected()
    assert (partition, position) == (REJECTED, "row 4, which is row 6 of a.csv")
    (origin,) = flow.mirror.status.origins("B")
    assert origin.position == "row 2, which is row 3 of a.csv"
    assert (origin.facts["file.name"], origin.facts["file.returned_as"]) == ("a.csv", REJECTED)
    again = (flow.done / "rejected" / REJECTED).read_text()
    assert len(again.splitlines()) == 2
    assert ",6," in again
    correct(flow, REJECTED, lambda text: text.replace("\n,5", "\nE,5"), as_name="whatever.csv")
    flow.pass_once()
    assert flow.held["E"] == "5"
    assert flow.rejected() == []
    assert flow.mirror.status.origins("E")[0].position == "row 2, which is row 6 of a.csv"


def test_unchanged_rejected_rows_that_are_dropped_again_change_nothing(open_flow: Open) -> None:
    flow = open_flow()
    flow.refuses = {"900"}
    flow.write("a.csv", "part,mass\nA,1\n,2\nC\nD,4,extra\nE,900\n")
    flow.pass_once()
    held = dict(flow.held)
    assert held == {"A": "1"}
    assert len(flow.rejected()) == 4
    correct(flow, REJECTED, lambda text: text)
    flow.pass_once()
    assert flow.held == held
    assert [partition for partition, _ in flow.rejected()] == [REJECTED] * 4
    rows = (flow.done / "rejected" / REJECTED).read_text().splitlines()
    assert len(rows) == 5
    assert all("The row was resubmitted without a change: " in row for row in rows[1:])
    correct(flow, REJECTED, lambda text: text)
    flow.pass_once()
    assert (flow.done / "rejected" / REJECTED).read_text().count("resubmitted without") == 4, (
        "not once more in each run"
    )


def test_an_entry_that_the_service_rejected_can_be_corrected_as_a_row(open_flow: Open) -> None:
    flow = open_flow()
    flow.refuses = {"900"}
    flow.write("a.csv", "part,mass,note\n" + "".join(f"P{n},{n},n{n}\n" for n in range(50)) + "X,900,heavy\nY,901,ok\n")
    flow.pass_once()
    text = (flow.done / "rejected" / REJECTED).read_text()
    assert 'X,900,heavy,"Too heavy, says the service.",52,X,' in text
    correct(flow, REJECTED, lambda text: text.replace("X,900", "X,90"))
    flow.pass_once()
    assert (flow.held["X"], len(flow.held), flow.rejected()) == ("90", 52, [])


def test_a_file_of_corrected_rows_does_not_replace_the_original_content(open_flow: Open, monkeypatch: Any) -> None:
    flow = open_flow()
    real = DirectoryConnector.partitions
    monkeypatch.setattr(
        DirectoryConnector, "partitions", lambda self: [replace(one, deletes="remove") for one in real(self)]
    )
    flow.write("a.csv", "part,mass\nA,1\n,2\nC,3\n,4\n")
    flow.pass_once()
    correct(
        flow, REJECTED, lambda text: text.replace("\n,2", "\nB,2").rpartition("\r\n,4")[0] + "\r\n", as_name="a.csv"
    )
    flow.pass_once()
    assert flow.held == {"A": "1", "B": "2", "C": "3"}, "nothing was removed, although it has the original's name"
    assert flow.rejected() == [("a.csv", 5)], "rows that were not dropped again are still rejected"
    flow.write("a.csv", "part,mass\nA,1\nB,2\n")
    flow.pass_once()
    assert flow.held == {"A": "1", "B": "2"}


def test_facts_of_the_file_are_those_of_the_original(open_flow: Open) -> None:
    flow = open_flow(key="{file.stem}.{part}", recursive=True)
    flow.write("x/tank.csv", "part,mass\nA,1\n,2\n")
    flow.pass_once()
    name = "tank.csv.rejected.csv"
    path = flow.done / "rejected" / "x" / name
    flow.write("corrected by hand.csv", path.read_text().replace("\n,2", "\nB,2"))
    flow.pass_once()
    assert flow.held == {"tank.A": "1", "tank.B": "2"}


FORMATS = {
    "semicolon": ("a.csv", "part;mass\nA;1,5\n;2,5\nC;3,5\n", "utf-8"),
    "tab": ("a.tsv", "part\tmass\nA\t1,5\n\t2,5\n", "utf-8"),
    "bar": ("a.csv", "part|mass\nA|1\n|2\nB|3\n", "utf-8"),
    "windows-1252": ("a.csv", "part;mass;maß\nä;1;größe\n;2;größe\nö;3;weiß\n", "cp1252"),
    "shift-jis": ("a.csv", "part,mass,名前\nA,1,部品番号\n,2,部品質量\n", "cp932"),
    "utf-16": ("a.csv", "part,mass,maß\nA,1,größe\n,2,größe\n", "utf-16"),
    "utf-8 with a mark": ("a.csv", "part,mass,maß\nA,1,größe\n,2,größe\n", "utf-8-sig"),
    "quotes and line ends": ("a.csv", 'part,mass,note\r\nA,1,"x, ""y"""\r\n,2,"two\r\nlines, ""q"""\r\n', "utf-8"),
    "NDJSON": ("a.ndjson", '{"part": "A", "mass": 1}\n{"part": "", "mass": 2.50, "at": {"x": null, "y": [1, "ä"]}}\n', "utf-8"),
    "NDJSON in UTF-16": ("a.ndjson", '{"part": "ä", "mass": 1}\n{"mass": 2.50}\n', "utf-16"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMATS)
def test_rejected_rows_keep_format_header_dialect_and_encoding(open_flow: Open, case: str) -> None:
    name, text, encoding = FORMATS[case]
    flow = open_flow()
    flow.write(name, text, encoding)
    flow.pass_once()
    before = dict(flow.held)
    (rejected,) = flow.rejected()
    (path,) = (flow.done / "rejected").iterdir()
    written = path.read_bytes()
    back = written.decode(encoding)
    if encoding in {"utf-16", "utf-8-sig"}:
        assert written.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16))
    if name.endswith(".ndjson"):
        record = json.loads(back)
        assert all(name in record for name in RESERVED)
        corrected = back.replace('"part": ""', '"part": "new"').replace('"part": null', '"part": "new"')
    else:
        header = text.splitlines()[0]
        delimiter = next(mark for mark in "\t;|," if mark in header)
        assert back.splitlines()[0] == header + delimiter + delimiter.join(RESERVED)
        corrected = back.replace(f"\n{delimiter}2", f"\nnew{delimiter}2")
    path.unlink()
    flow.write(path.name, corrected, encoding)
    flow.pass_once()
    assert flow.rejected() == [], rejected
    (new,) = flow.held.keys() - before.keys()
    assert new == "new"
    assert flow.held["new"].startswith("2")


def test_rejected_rows_of_a_compressed_file_are_uncompressed_and_those_of_json_are_lines(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv.gz", gzip.compress(b"part;mass\nA;1\n;2\n"))
    flow.write("b.json", '[{"part": "B", "mass": 3}, {"part": null, "mass": 4}]')
    flow.pass_once()
    assert flow.files(flow.done / "rejected") == ["a.csv.gz.rejected.csv", "b.json.rejected.ndjson"]
    correct(flow, "a.csv.gz.rejected.csv", lambda text: text.replace("\n;2", "\nA2;2"))
    correct(flow, "b.json.rejected.ndjson", lambda text: text.replace('"part": null', '"part": "B2"'))
    flow.pass_once()
    assert flow.held == {"A": "1", "A2": "2", "B": "3", "B2": "4"}
    assert flow.rejected() == []
    assert "NDJSON" in flow.receipt("b.json")["summary"]


def workbook(*rows: list[Any]) -> bytes:
    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(content)
    return content.getvalue()


def test_a_workbook_with_rejected_rows_is_archived_although_reading_has_ended(open_flow: Open) -> None:
    """`ingestd sync` acknowledges files after it has stopped all readings."""
    flow = open_flow()
    flow.write("a.xlsx", workbook(["part", "mass"], ["A", 1], [None, 2]))
    flow.pass_once(stop=True)
    assert flow.files(flow.done) == ["a.xlsx", "a.xlsx.receipt.json", "rejected/a.xlsx.rejected.csv"]


def test_rejected_rows_of_a_workbook_are_csv_and_are_read_although_the_pattern_names_workbooks(open_flow: Open) -> None:
    flow = open_flow(pattern="*.xlsx")
    flow.write("a.xlsx", workbook(["part", "mass"], ["A", 1], [None, 2]))
    flow.pass_once()
    assert flow.held == {"A": "1"}
    assert "CSV in UTF-8" in flow.receipt("a.xlsx")["summary"]
    correct(flow, "a.xlsx.rejected.csv", lambda text: text.replace("\n,2", "\nB,2"))
    flow.pass_once()
    assert (flow.held, flow.rejected()) == ({"A": "1", "B": "2"}, [])


def test_rejected_rows_keep_a_lower_header_and_units_on_top(open_flow: Open) -> None:
    flow = open_flow(format={"type": "csv", "header_row": 3, "units_row": True, "comment": "#"})
    flow.write("a.csv", "Export of 2026\n\npart,mass\n-,kg\nA,1\n#,x\n,2\n")
    flow.pass_once()
    text = (flow.done / "rejected" / REJECTED).read_text()
    assert text.splitlines()[:2] == ["part,mass,_reason,_row,_field,_origin", "-,kg,,,,"]
    correct(flow, REJECTED, lambda text: text.replace("\n,2", "\n#B,2").replace("\n#B", '\n"#B"'))
    flow.pass_once()
    assert (flow.held, flow.rejected()) == ({"A": "1", "#B": "2"}, [])


def test_an_undecodable_row_is_shown_and_can_be_corrected(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\nü-1,1\nü-2,2\n".encode() + b"K\xe4se,3\n")
    flow.pass_once()
    assert "K\\xe4se,3" in (flow.done / "rejected" / REJECTED).read_text()
    correct(flow, REJECTED, lambda text: text.replace("\\xe4", "ä"))
    flow.pass_once()
    assert flow.held["Käse"] == "3"
    assert flow.rejected() == []


def test_a_line_of_invalid_json_must_be_corrected_as_fields(open_flow: Open) -> None:
    flow = open_flow()
    name = "a.ndjson.rejected.ndjson"
    flow.write("a.ndjson", '{"part": "A", "mass": 1}\n{"part": "B" "mass": 2}\n')
    flow.pass_once()
    correct(flow, name, lambda text: text.replace('\\"B\\" ', '\\"B\\", '))
    flow.pass_once()
    assert "_text" in (flow.done / "rejected" / name).read_text()
    assert flow.mirror.status.rejections(limit=1)[0].reason.startswith(
        "The column _text still holds the text of the row"
    )
    correct(flow, name, lambda text: '{"part": "B", "mass": 2, ' + text[text.index('"_reason"') :])
    flow.pass_once()
    assert (flow.held, flow.rejected()) == ({"A": "1", "B": "2"}, [])


def test_rows_that_a_user_added_or_removed_are_read_unchanged(open_flow: Open) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\n,1\n,2\n")
    flow.pass_once()
    correct(flow, REJECTED, lambda text: "\r\n".join([*text.splitlines()[:1], "N,9,,,,", ""]))
    flow.pass_once()
    assert flow.held == {"N": "9"}
    assert len(flow.rejected()) == 2, "rows that were not dropped again are still rejected"


def test_rejections_of_other_pipelines_are_unaffected_by_a_lost_state_file(open_flow: Open, tmp_path: Path) -> None:
    flow = open_flow()
    flow.write("a.csv", "part,mass\n,1\n")
    flow.pass_once()
    flow.close()
    (tmp_path / "ingestd.db").rename(tmp_path / "lost.db")
    fresh = open_flow()
    fresh.now += 1000
    fresh.write("b.csv", "part,mass\n,7\n")
    fresh.pass_once()
    correct(fresh, REJECTED, lambda text: text.replace("\n,1", "\nA,1"))
    fresh.pass_once()
    assert fresh.held == {"A": "1"}
    assert fresh.rejected() == [("b.csv", 2)]


def test_kept_files_have_quarantine_and_receipts_if_configured(open_flow: Open) -> None:
    flow = open_flow(after="keep", archive=None, quarantine="drop/bad", receipts="receipts", recursive=True)
    flow.write("a.csv", "part,mass\nA,1\n,2\n")
    flow.pass_once()
    assert flow.files(flow.drop) == ["a.csv", "bad/a.csv.rejected.csv"]
    assert json.loads((flow.base / "receipts" / "a.csv.receipt.json").read_text())["rejected"]["count"] == 1
    flow.restart()
    assert flow.pass_once().read == ()
    (flow.drop / "bad" / REJECTED).rename(flow.drop / REJECTED)
    path = flow.drop / REJECTED
    path.write_text(path.read_text().replace("\n,2", "\nB,2"))
    flow.pass_once()
    flow.pass_once()
    assert (flow.held, flow.rejected()) == ({"A": "1", "B": "2"}, [])


def test_a_row_that_lacks_a_field_is_accepted_once_its_reason_is_emptied(open_flow: Open) -> None:
    flow = open_flow(value="{mass} {note}")
    flow.write("a.csv", "part,mass,note\nA,1,x\nB,2\nC,3\n")
    flow.pass_once()
    assert flow.held == {"A": "1 x"}
    reason = "The row has 2 fields but the header names 3."
    text = (flow.done / "rejected" / REJECTED).read_text()
    assert reason in text
    correct(flow, REJECTED, lambda text: text.replace(reason, "", 1))
    flow.pass_once()
    assert flow.held == {"A": "1 x", "B": "2 "}
    assert [position for _, position in flow.rejected()] == ["row 3, which is row 4 of a.csv"]


def test_a_very_long_name_is_shortened_in_the_archive_with_its_receipt_and_rejected_rows(open_flow: Open) -> None:
    flow = open_flow()
    names = [f"{'ü' * 122}{number}.csv" for number in (1, 2)]
    for name, part in zip(names, "AB", strict=True):
        assert len(name.encode()) > 240
        flow.write(name, f"part,mass\n{part},1\n,2\n")
    flow.pass_once()
    assert flow.files(flow.drop) == []
    assert flow.held == {"A": "1", "B": "1"}
    archived = [path for path in flow.done.iterdir() if path.suffix == ".csv"]
    assert len(archived) == 2
    receipts = [json.loads(path.with_name(path.name + ".receipt.json").read_bytes()) for path in archived]
    assert sorted(receipt["file"] for receipt in receipts) == names
    connector = flow.reader.connector
    assert isinstance(connector, DirectoryConnector)
    state = flow.mirror.intake.open_partition("flow", Partition(name=names[0]), flow.reader.sink, flow.reader.digest)
    assert state.cursor is not None
    assert "it was archived as" in connector.describe_location(names[0], state.cursor)
    for number, rejected in enumerate(sorted(path.name for path in (flow.done / "rejected").iterdir())):
        correct(flow, rejected, lambda text, number=number: text.replace("\n,2", f"\nM{number},2"))  # type: ignore[misc]
    flow.pass_once()
    assert flow.held == {"A": "1", "B": "1", "M0": "2", "M1": "2"}
    assert flow.rejected() == []
