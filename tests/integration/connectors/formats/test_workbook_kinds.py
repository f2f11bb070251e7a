"""Workbooks of every kind and writer: detected by their first bytes, with exact cells and dates."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from connectors.formats import RecordChunk
from connectors.formats.excel import Excel
from connectors.formats.excel.reader import CORRECT, SAVE
from ingestd.sdk import NOTICE, SourceBroken
from tests.support.convertible_files import zipped
from tests.support.format_records import read as read_file
from tests.support.workbook_bytes import compound_file, ods, ods_cell, ods_row, xls, xlsb, xlsx

NA = b"\x2a"
ROWS: list[list[Any]] = [
    ["part", "mass", "when"],
    ["A", 1.5, (46024.0, "yyyy-mm-dd hh:mm")],
    ["B", NA, None],
    ["C", 3.0, (-1.5, "yyyy-mm-dd hh:mm")],
]
THEME = {"theme": zipped({"theme.xml": b"<x/>"})}
RECORDS = [("A", "1.5", "2026-01-02T00:00:00"), ("C", "3", "1899-12-28T12:00:00")]


def read(data: bytes, name: str = "a.xlsx", **settings: Any) -> RecordChunk:
    (chunk,) = read_file(Excel(**settings), data, name)
    return chunk


def rewritten(data: bytes, change: Callable[[str, bytes], tuple[str, bytes]]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        return zipped(dict(change(name, old.read(name)) for name in old.namelist()))


_RELATIONS = b"officeDocument/2006/relationships"


def strict(name: str, data: bytes) -> tuple[str, bytes]:
    """Save as Excel saves a Strict Open XML workbook."""
    for package, word in (
        (b"spreadsheetml/2006/main", b"spreadsheetml/main"),
        (_RELATIONS, b"officeDocument/relationships"),
    ):
        data = data.replace(b"http://schemas.openxmlformats.org/" + package, b"http://purl.oclc.org/ooxml/" + word)
    return name, data


@pytest.mark.parametrize("name", ["a.xls", "a.xlsx"])
@pytest.mark.parametrize(
    "data",
    [xls(ROWS), xls(ROWS, others=THEME), xlsb(ROWS)],
    ids=["xls of Excel 97", "xls of Excel 2007, with a zip inside", "xlsb"],
)
def test_the_first_bytes_determine_the_kind_of_a_workbook(name: str, data: bytes) -> None:
    chunk = read(data, name)
    assert chunk.records.rows() == RECORDS
    assert [reject.reason for reject in chunk.rejects] == [f"The row has #N/A in B3 (mass). {CORRECT}"]


@pytest.mark.parametrize(
    "change",
    [
        strict,
        lambda name, data: (name.replace("/", "\\"), data),
        lambda name, data: (name.replace("sharedStrings", "SharedStrings"), data),
    ],
    ids=["strict", "backslashes", "another case"],
)
def test_open_xml_with_other_prefixes_reports_its_errors(change: Any) -> None:
    chunk = read(rewritten(xlsx(["part", "mass"], ["A", 1], ["B", "#N/A"]), change))
    assert chunk.records.rows() == [("A", "1")]
    assert [reject.reason for reject in chunk.rejects] == [f"The row has #N/A in B3 (mass). {CORRECT}"]


def test_a_formula_saved_without_its_value_is_no_empty_text() -> None:
    data = xlsx(["part", "mass", "note"], ["A", "=1+1", "x"], ["B", 2, None])
    chunk = read(data)
    assert chunk.records.rows() == [("B", "2", "")]
    (reject,) = chunk.rejects
    assert (reject.reason, reject.field) == (
        f"The row has a formula without a saved value in B2 (mass). {SAVE}",
        "mass",
    )
    missing = read(data, errors="missing")
    assert missing.records.rows() == [("A", None, "x"), ("B", "2", "")]


def test_a_formula_with_an_empty_text_as_value_is_an_empty_text() -> None:
    data = rewritten(
        xlsx(["part", "note"], ["A", "=LEFT(A1,0)"]),
        lambda name, data: (name, data.replace(b'<c r="B2">', b'<c r="B2" t="str">').replace(b"<v />", b"<v></v>")),
    )
    assert read(data).records.rows() == [("A", "")]


def test_a_formula_of_an_open_document_without_a_value() -> None:
    formula = '<table:table-cell table:formula="of:=1+1" table:number-columns-repeated="2"/>'
    empty = ods_cell("", 'table:formula="of:=LEFT(1;0)" office:value-type="string" office:string-value=""')
    data = ods(
        ods_row(ods_cell("part"), ods_cell("a"), ods_cell("b")),
        ods_row(ods_cell("A"), formula, repeated=2),
        ods_row(ods_cell("B"), empty, ods_cell("x")),
    )
    chunk = read(data, "a.ods")
    assert chunk.records.rows() == [("B", "", "x")]
    sentence = (
        "The row has a formula without a saved value in B{} (a), a formula without a saved value in C{} (b). " + SAVE
    )
    assert [reject.reason for reject in chunk.rejects] == [sentence.format(*[row] * 3) for row in (2, 3)]


@pytest.mark.parametrize(
    ("serial", "code", "text"),
    [
        (46024, "yyyy-mm-dd hh:mm:ss", "2026-01-02T00:00:00"),
        (46024, 'dd.mm.yyyy "at" hh:mm', "2026-01-02T00:00:00"),
        (46024, "yyyy-mm-dd", "2026-01-02"),
        (46024, 'yyyy-mm-dd "hours"', "2026-01-02"),
        (46024, "[$-407]d. mmmm yyyy;@", "2026-01-02"),
        (46024.5, "yyyy-mm-dd", "2026-01-02T12:00:00"),
        (-1, "yyyy-mm-dd", "1899-12-29"),
        (-18000.25, "yyyy-mm-dd hh:mm", "1850-09-17T18:00:00"),
        (0.25, "hh:mm", "06:00:00"),
        (0.25, "yyyy-mm-dd hh:mm", "06:00:00"),
        (1.5, "[h]:mm", "36:00:00"),
    ],
)
def test_a_date_without_a_time_has_no_time(serial: float, code: str, text: str) -> None:
    chunk = read(xlsx(["when"], [serial], formats={"A2": code}))
    assert chunk.records.rows() == [(text,)]


@pytest.mark.parametrize(("serial", "text"), [(-0.25, "-06:00:00"), (-2.25, "-54:00:00")])
@pytest.mark.parametrize(
    "workbook",
    [
        lambda serial: xlsx(["balance"], [serial], formats={"A2": "hh:mm"}, epoch=CALENDAR_MAC_1904),
        lambda serial: xlsx(["balance"], [serial], formats={"A2": "hh:mm"}),
        lambda serial: xls([["balance"], [(serial, "hh:mm")]]),
        lambda serial: xlsb([["balance"], [(serial, "hh:mm")]]),
    ],
    ids=["1904", "1900", "xls", "xlsb"],
)
def test_a_negative_time_keeps_its_sign(workbook: Callable[[float], bytes], serial: float, text: str) -> None:
    assert read(workbook(serial)).records.rows() == [(text,)]


def test_the_first_day_of_a_workbook_with_the_1904_date_system() -> None:
    epoch = datetime(1904, 1, 1)  # noqa: DTZ001 - a cell knows no zone
    chunk = read(xlsx(["when"], [0.5], [0], [1], formats={f"A{row}": "yyyy-mm-dd" for row in (2, 3, 4)}, epoch=epoch))
    assert chunk.records.rows() == [("1904-01-01T12:00:00",), ("1904-01-01",), ("1904-01-02",)]


def test_a_merged_header_cell_belongs_to_each_of_its_columns_in_every_kind_of_workbook() -> None:
    rows: list[list[Any]] = [
        ["part", "mass", None, "cost", None],
        [None, "min", "max", "min", "max"],
        ["A", 1.0, 2.0, 3.0, 4.0],
    ]

    def merge(sheet: Any) -> None:
        sheet.merge_cells("B1:C1")
        sheet.merge_cells("D1:E1")

    wide = 'office:value-type="string" table:number-columns-spanned="2"'
    covered = "<table:covered-table-cell/>"
    workbooks = [
        xlsx(*rows, change=merge),
        xlsb(rows, merged=[(0, 0, 1, 2), (0, 0, 3, 4)]),
        ods(
            ods_row(ods_cell("part"), ods_cell("mass", wide), covered, ods_cell("cost", wide), covered),
            ods_row(ods_cell("", ""), *map(ods_cell, ("min", "max", "min", "max"))),
            ods_row(*map(ods_cell, "A1234")),
        ),
    ]
    for data in workbooks:
        chunk = read(data, header_rows=2)
        assert chunk.records.columns == ["part", "mass min", "mass max", "cost min", "cost max"]
        assert chunk.records.rows() == [("A", "1", "2", "3", "4")]


def test_cells_after_the_last_named_column_are_reported() -> None:
    chunk = read(xlsx(["part", "mass", None], ["A", 1, None], ["B", 2, "old"], ["C", 3, "new"]))
    assert chunk.records.columns == ["part", "mass"]
    assert chunk.facts[NOTICE] == (
        "2 cells, the first of them C3, hold a value after the last column that the header names. Such cells are not read."
        " Name the column."
    )
    assert NOTICE not in read(xlsx(["part", None], ["A", None])).facts


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "a.xlsx is empty."),
        (
            compound_file({"EncryptedPackage": b"x", "EncryptionInfo": b"y"}),
            "a.xlsx needs a password. Save it without a password.",
        ),
        (
            compound_file({"WordDocument": b"x"}),
            "a.xlsx holds no workbook: a document of another program, or only part of",
        ),
        (b"<html><table><tr><td>1</td></tr></table></html>", "a.xlsx is no workbook but HTML or XML. Open it and"),
        (
            zipped({"a.txt": b"x"}),
            "a.xlsx is a zip file without a workbook. If it holds other files, rename it to .zip.",
        ),
        (xlsx(["a"], [1])[:-400], "a.xlsx can't be read as a workbook: "),
        (xls(ROWS)[:-600], "a.xlsx can't be read as a workbook: "),
        (
            xls(ROWS)[:600] + bytes(8192),
            "a.xlsx holds no workbook: a document of another program, or only part of one.",
        ),
    ],
    ids=["empty", "password", "another document", "HTML", "zip", "cut off", "xls that is cut off", "half of it zeros"],
)
def test_an_invalid_workbook_is_reported_in_one_accurate_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(SourceBroken) as caught:
        read(data)
    assert str(caught.value).startswith(sentence)


def test_an_xls_with_zeroed_cells_is_reported_in_one_sentence() -> None:
    whole = xls(ROWS)
    start = whole.index(b"\x09\x08\x10\x00")
    with pytest.raises(SourceBroken, match=r"a\.xls (can't be read|holds no workbook|has no visible sheet)"):
        read(whole[:start] + bytes(len(whole) - start), "a.xls")


def with_cell(cell: str) -> Callable[[str, bytes], tuple[str, bytes]]:
    """Return a change of a workbook: its cell B3 is ``cell``."""

    def change(name: str, data: bytes) -> tuple[str, bytes]:
        if not name.endswith("sheet1.xml"):
            return name, data
        changed = re.sub(rb'<c r="B3".*?</c>', f'<c r="B3" {cell}</c>'.encode(), data)
        assert changed != data
        return name, changed

    return change


def with_module(attribute: str) -> Callable[[str, bytes], tuple[str, bytes]]:
    """Return a change of a workbook: it has a hidden module sheet, as programs of 1995 wrote it."""
    attribute = f'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" {attribute}'
    module = f'<sheet name="Module1" sheetId="9" state="veryHidden" {attribute}/>'.encode()
    return lambda name, data: (
        name,
        data.replace(b"<sheets>", b"<sheets>" + module) if name == "xl/workbook.xml" else data,
    )


SIMPLE = xlsx(["part", "mass"], ["A", 1.5], ["B", 2], ["C", 3])


@pytest.mark.parametrize(
    "error",
    [
        "#GETTING_DATA", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "#BUSY!", "#UNKNOWN!", "#N/A", "Err:502",
    ],
)  # fmt: skip
@pytest.mark.parametrize("formula", ["", "<f>A1</f>", '<f t="shared" si="0"/>'])
def test_an_error_of_any_program_rejects_only_its_row(error: str, formula: str) -> None:
    chunk = read(rewritten(SIMPLE, with_cell(f't="e">{formula}<v>{error}</v>')))
    assert chunk.records.rows() == [("A", "1.5"), ("C", "3")]
    assert [(reject.position, reject.reason) for reject in chunk.rejects] == [
        (3, f"The row has {error} in B3 (mass). {CORRECT}")
    ]


def test_the_text_of_an_error_in_a_text_cell_stays() -> None:
    data = rewritten(rewritten(SIMPLE, with_cell('t="str"><f>A1</f><v>#SPILL!</v>')), with_module('r:id=""'))
    chunk = read(data)
    assert chunk.records.rows()[1] == ("B", "#SPILL!")


@pytest.mark.parametrize("attribute", ['r:id=""', "", 'r:id="rId99"'])
@pytest.mark.parametrize("sheet", [None, "Sheet", 1])
def test_a_hidden_module_sheet_does_not_prevent_reading(attribute: str, sheet: str | int | None) -> None:
    chunk = read(rewritten(SIMPLE, with_module(attribute)), sheet=sheet)
    assert chunk.records.rows() == [("A", "1.5"), ("B", "2"), ("C", "3")]
