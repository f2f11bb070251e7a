"""Workbooks as Excel and LibreOffice write them: exact text, and mistakes of a sheet."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time, timedelta
from typing import Any

import openpyxl
import pytest

from connectors.formats import RecordChunk
from connectors.formats.excel import Excel
from connectors.formats.excel.reader import CORRECT
from ingestd.sdk import SourceBroken
from ingestd.workbooks import workbook as bounds
from tests.support.convertible_files import zipped
from tests.support.format_records import read as read_file
from tests.support.workbook_bytes import ods, ods_cell, ods_row, xlsx


def read(data: bytes, name: str = "a.xlsx", **settings: Any) -> RecordChunk:
    (chunk,) = read_file(Excel(**settings), data, name)
    return chunk


def test_cells_are_the_text_that_a_user_would_type() -> None:
    chunk = read(
        xlsx(
            ["text", "number", "whole", "large", "truth", "day", "instant", "clock", "span"],
            [
                "00417",
                0.1,
                3.0,
                1e22,
                True,
                date(2026, 1, 2),
                datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 - a cell knows no zone
                time(1, 2),
                timedelta(hours=30),
            ],
            ["0.10", 1e-7, -5, 123456789.125, False, None, None, None, None],
        )
    )
    assert chunk.records.rows() == [
        ("00417", "0.1", "3", "1e+22", "true", "2026-01-02", "2026-01-02T03:04:05", "01:02:00", "30:00:00"),
        ("0.10", "1e-07", "-5", "123456789.125", "false", "", "", "", ""),
    ]
    assert chunk.positions.to_list() == [2, 3]
    assert chunk.facts == {"file.sheet": "Sheet", "file.header_row": "1"}


def test_an_error_cell_rejects_its_row_and_names_the_cell() -> None:
    chunk = read(xlsx(["part", "mass"], ["A", 1], ["B", "#N/A"], ["C", 3]))
    assert chunk.records.rows() == [("A", "1"), ("C", "3")]
    (reject,) = chunk.rejects
    assert (reject.position, reject.reason, reject.field) == (3, f"The row has #N/A in B3 (mass). {CORRECT}", "mass")
    assert reject.record == {"part": "B", "mass": "#N/A"}


def test_the_table_can_be_anywhere_in_the_sheet() -> None:
    def fill(sheet: Any) -> None:
        sheet["A1"] = "Bench 7"
        rows: list[list[Any]] = [["part", "mass", "note"], ["A", 1, "x"], [None, None, None], ["B", "#N/A", "y"]]
        for row, values in enumerate(rows, start=4):
            for column, value in enumerate(values, start=3):
                sheet.cell(row, column, value)
        sheet["A9"] = "end"

    chunk = read(xlsx(change=fill), area="C4:D8")
    assert chunk.records.columns == ["part", "mass"]
    assert chunk.records.rows() == [("A", "1")]
    assert chunk.positions.to_list() == [5]
    assert [reject.reason for reject in chunk.rejects] == [f"The row has #N/A in D7 (mass). {CORRECT}"]


def test_a_header_of_two_rows_with_merged_cells() -> None:
    def fill(sheet: Any) -> None:
        for row in (
            ["part", "mass", None, "force"],
            [None, "min", "max", None],
            [None, "kg", "kg", "N"],
            ["A", 1, 2, 3],
        ):
            sheet.append(row)
        sheet.merge_cells("B1:C1")
        sheet.merge_cells("A1:A2")

    chunk = read(xlsx(change=fill), header_rows=2, units_row=True)
    assert chunk.records.columns == ["part", "mass min", "mass max", "force"]
    assert chunk.records.rows() == [("A", "1", "2", "3")]
    assert chunk.positions.to_list() == [4]
    assert chunk.facts["units.mass max"] == "kg"


def test_a_sheet_without_a_header_has_the_configured_columns_also_where_it_has_no_cells() -> None:
    def fill(sheet: Any) -> None:
        sheet["B2"], sheet["B4"] = "A", 1

    chunk = read(xlsx(change=fill), columns=["row", "part", "note"])
    assert chunk.records.rows() == [("", "A", ""), ("", "1", "")]
    assert (chunk.positions.to_list(), "file.header_row" in chunk.facts) == ([2, 4], False)


def test_a_sheet_is_selected_by_name_by_number_or_as_the_first_with_cells() -> None:
    book = openpyxl.Workbook()
    for name, state in (("Hidden", "hidden"), ("Empty", "visible"), ("Data", "visible")):
        sheet = book.create_sheet(name)
        sheet.sheet_state = state
        if name != "Empty":
            sheet.append(["a"])
            sheet.append([name])
    out = io.BytesIO()
    book.save(out)
    assert read(out.getvalue()).records.rows() == [("Data",)]
    assert read(out.getvalue(), sheet="Hidden").records.rows() == [("Hidden",)]
    assert read(out.getvalue(), sheet=4).records.rows() == [("Data",)]
    with pytest.raises(SourceBroken, match=r"a\.xlsx has no sheet 'Mass'; it has 'Sheet', 'Hidden', 'Empty', 'Data'\."):
        read(out.getvalue(), sheet="Mass")


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        ([["a"]], {"header_row": 3}, r"has no row 3 \(header_row\), which should be its header"),
        ([["x"], [None], ["a"]], {"header_row": 2}, r"the header row 2 \(header_row\) is blank"),
        ([["a", "a"], [1, 2]], {}, "more than one column 'a'"),
        ([["a", None, "b"], [1, 2, 3]], {"unnamed_columns": "refuse"}, "no name to column 2 of 3"),
    ],
)
def test_a_sheet_without_a_usable_header_is_reported_in_one_sentence(rows: Any, settings: Any, words: str) -> None:
    with pytest.raises(SourceBroken, match=words):
        read(xlsx(*rows), **settings)


def test_columns_without_a_name_after_the_last_named_one_are_ignored() -> None:
    assert read(xlsx(["a", None, "b", None, None], [1, 2, 3, None, "note"])).records.columns == ["a", "column 2", "b"]


def test_a_header_without_rows_has_no_records() -> None:
    assert read(xlsx(["a", "b"])).records.height == 0


def test_a_workbook_with_a_too_large_uncompressed_size_is_rejected_before_it_is_uncompressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "UNPACKED_BYTES", 1000)
    with pytest.raises(SourceBroken, match="holds more than 1000 bytes once unpacked"):
        list(Excel().parse(io.BytesIO(xlsx(["a"], [1])), "a.xlsx"))


def test_external_xml_entities_are_not_resolved() -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    with zipfile.ZipFile(io.BytesIO(xlsx(["a"], ["#N/A"]))) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"<worksheet", bomb + b"<worksheet")
    with pytest.raises(SourceBroken, match="declares entities"):
        read(zipped(parts))


def test_an_open_document_and_its_error_cells() -> None:
    data = ods(
        ods_row(ods_cell("part"), ods_cell("mass")),
        ods_row("<table:table-cell/>", repeated=2),
        ods_row(ods_cell("A"), ods_cell("0,10", 'office:value-type="float" office:value="0.1"')),
        ods_row(
            ods_cell("B"),
            ods_cell("#N/A", 'office:value-type="string" office:string-value="" calcext:value-type="error"'),
        ),
    )
    chunk = read(data, "a.ods")
    assert chunk.records.rows() == [("A", "0.1")]
    assert chunk.positions.to_list() == [4]
    assert [reject.reason for reject in chunk.rejects] == [f"The row has #N/A in B5 (mass). {CORRECT}"]


def test_a_number_that_no_cell_can_hold_is_not_infinity() -> None:
    def number(value: str) -> str:
        return ods_cell("x", f'office:value-type="float" office:value="{value}"')

    rows = [ods_row(ods_cell("part"), ods_cell("mass"))]
    rows += [ods_row(ods_cell(value), number(value)) for value in ("1e400", "-1e400", "1e300")]
    chunk = read(ods(*rows, ods_row(ods_cell("text"), ods_cell("inf"))), "a.ods")
    assert chunk.records.rows() == [("1e300", "1e+300"), ("text", "inf")]
    reasons = [f"The row has inf in B2 (mass). {CORRECT}", f"The row has -inf in B3 (mass). {CORRECT}"]
    assert [reject.reason for reject in chunk.rejects] == reasons


def test_a_text_of_an_open_document_without_a_type_is_a_text() -> None:
    data = ods(
        ods_row(ods_cell("part", ""), ods_cell("mass", "")),
        ods_row(ods_cell("A"), ods_cell("0.10", ""), "<table:table-cell/>"),
        ods_row(ods_cell("B<text:tab/>C", ""), ods_cell("2", 'office:value-type="float" office:value="2"')),
    )
    chunk = read(data, "a.ods")
    assert chunk.records.columns == ["part", "mass"]
    assert chunk.records.rows() == [("A", "0.10"), ("B\tC", "2")]


@pytest.mark.parametrize("error", ["#N/A", "#WERT!", "#VALEUR !", "Err:502"])
def test_an_error_that_openoffice_saves_as_the_number_0_is_an_error(error: str) -> None:
    number = 'office:value-type="float" office:value="0"'
    data = ods(
        ods_row(ods_cell("part"), ods_cell("mass")),
        ods_row(ods_cell("A"), ods_cell(error, f'table:formula="oooc:=[.C1]" {number}')),
        ods_row(ods_cell("B"), ods_cell("#0", f'table:formula="of:=[.C2]" {number}')),
        ods_row(ods_cell("C"), ods_cell(error, number)),
    )
    chunk = read(data, "a.ods")
    assert chunk.records.rows() == [("B", "0"), ("C", "0")]
    assert [reject.reason for reject in chunk.rejects] == [f"The row has {error} in B2 (mass). {CORRECT}"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<text:p>a<text:tab/>b</text:p>", "a\tb"),
        ("<text:p>a<text:line-break/>b</text:p>", "a\nb"),
        ("<text:p><text:span>a<text:tab/></text:span>b<text:s text:c='2'/>c</text:p><text:p>d</text:p>", "a\tb  c\nd"),
        ("<office:annotation><text:p>n<text:tab/></text:p></office:annotation><text:p>a<text:tab/>b</text:p>", "a\tb"),
        ("<office:annotation><text:p>n<text:tab/></text:p></office:annotation><text:p>ab</text:p>", "ab"),
    ],
)
def test_a_cell_of_an_open_document_keeps_its_tabs_and_line_breaks(content: str, text: str) -> None:
    cell = f'<table:table-cell office:value-type="string">{content}</table:table-cell>'
    chunk = read(ods(ods_row(ods_cell("h")), ods_row(cell)), "a.ods")
    assert chunk.records.rows() == [(text,)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("PT26H30M00S", "26:30:00"),
        ("PT100H00M00.5000S", "100:00:00.5"),
        ("-PT01H02M03S", "-01:02:03"),
        ("P1DT2H", "26:00:00"),
        ("PT01H02M03S", "01:02:03"),
        ("P1Y", "P1Y"),
    ],
)
def test_an_elapsed_time_of_an_open_document_is_hours_minutes_and_seconds(value: str, text: str) -> None:
    about = f'office:value-type="time" office:time-value="{value}"'
    rows = [ods_row(ods_cell("h"), ods_cell("i")), ods_row(ods_cell("x", about), repeated=2)]
    chunk = read(ods(*rows), "a.ods")
    assert [row[0] for row in chunk.records.rows()] == [text, text]
