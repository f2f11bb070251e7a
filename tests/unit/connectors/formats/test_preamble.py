"""Facts in the rows above a header: of CSV, fixed width and spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from connectors.formats import Format
from connectors.formats.csv import Csv
from connectors.formats.excel import Excel
from connectors.formats.fixed_width import FixedColumn, FixedWidth
from connectors.formats.preamble import MOST_ROWS, PREAMBLE, preamble_facts
from ingestd.sdk import SourceBroken
from tests.support.format_records import parse, read
from tests.support.workbook_bytes import xls

TABLE = "part;mass;len\n1;2;3\n2;3;4\n3;4;5\n"
WORD = st.text("abcÄ 1.-", min_size=1, max_size=6).filter(lambda text: text == text.strip())


def preamble(file_format: Format, content: bytes) -> dict[str, str]:
    found = [chunk.facts for chunk in read(file_format, content, "run.csv")]
    assert all(facts == found[0] for facts in found)
    return {name.removeprefix(PREAMBLE): text for name, text in found[0].items() if name.startswith(PREAMBLE)}


def test_names_and_values_are_in_cells_or_separated_by_a_colon_or_an_equals_sign() -> None:
    above = "Rig export\nOperator;J. Doe\n# Date: 2026-03-01 12:30;;\nUnit = mm\nLimits;1;2\nNote: a;b\nOperator:;K\n"
    above += "Empty:\n;X;1\n\n"
    assert preamble(Csv(preamble=True, header_row=11), (above + TABLE).encode()) == {
        "Operator": "J. Doe", "Date": "2026-03-01 12:30", "Unit": "mm", "Limits": "1", "Note": "a;b", "Operator 2": "K", "X": "1",
    }  # fmt: skip


def test_comments_above_the_header_hold_facts_and_the_header_is_detected() -> None:
    content = ("#Operator;J. Doe\n#Unit: mm\n" + TABLE).encode("utf-16")
    assert preamble(Csv(preamble=True, comment="#"), content) == {"Operator": "J. Doe", "Unit": "mm"}


def test_a_separator_line_and_a_byte_order_mark_are_no_facts() -> None:
    assert preamble(Csv(preamble=True), ("\ufeffsep=;\nOperator;K\n" + TABLE).encode()) == {"Operator": "K"}


def test_without_the_option_there_are_no_facts() -> None:
    assert preamble(Csv(), ("Operator;K\n" + TABLE).encode()) == {}


def test_skipped_lines_of_fixed_width_hold_facts() -> None:
    columns = [FixedColumn(name="a", start=1, width=3)]
    content = b"Operator   J. Doe\r\nDate: 2026-03-01\r\n-----\r\nabc\r\n"
    facts = preamble(FixedWidth(columns=columns, skip_rows=3, preamble=True), content)
    assert facts == {"Operator": "J. Doe", "Date": "2026-03-01"}


def test_rows_above_the_header_of_a_sheet_hold_facts() -> None:
    content = xls([["Operator", "J. Doe"], ["", ""], ["Date: 2026-03-01"], ["part", "mass"], ["a", "1"]])
    [chunk] = parse(Excel(header_row=4, preamble=True), content, "run.xls")
    facts = {name: text for name, text in chunk.facts.items() if name.startswith(PREAMBLE)}
    assert facts == {"file.preamble.Operator": "J. Doe", "file.preamble.Date": "2026-03-01"}


@pytest.mark.parametrize("rows", [[["a", "b"]] * (MOST_ROWS + 1), [["a", "b" * 70_000]]])
def test_a_preamble_is_bounded(rows: Sequence[Sequence[str]]) -> None:
    with pytest.raises(SourceBroken, match=r"run\.csv has more than 1000 rows or 65536 characters above its header"):
        preamble_facts(rows, "run.csv")


def test_options_that_exclude_a_preamble_are_refused() -> None:
    with pytest.raises(ValidationError, match="needs header_row"):
        Excel(preamble=True)
    with pytest.raises(ValidationError, match="needs skip_rows"):
        FixedWidth(columns=[FixedColumn(name="a", start=1, width=3)], preamble=True)
    with pytest.raises(ValidationError, match="leave out header_row, header_rows, units_row and preamble"):
        Csv(columns=["a"], preamble=True)


@given(st.dictionaries(WORD, st.tuples(WORD, st.sampled_from([";", ": ", "=", " = ", ":;"])), max_size=5))
def test_each_name_has_its_value_however_it_is_written(facts: dict[str, tuple[str, str]]) -> None:
    above = "".join(f"{name}{mark}{value}\n" for name, (value, mark) in facts.items())
    found = preamble(Csv(preamble=True, delimiter=";", header_row=len(facts) + 1), (above + TABLE).encode())
    assert found == {name: value for name, (value, _) in facts.items()}


@pytest.mark.parametrize("values", [["1.234,5", "2", "3"], ["1 234", "-1 234,5", "2"], ["\u22125,25", "1,5", "2"]])
def test_the_header_below_a_preamble_is_found_by_numbers_as_they_are_written_in_europe(values: list[str]) -> None:
    text = "Rig export\nOperator;J. Doe\npart;mass;remark\n" + "".join(f"P-{text};{text};ok\n" for text in values)
    (chunk,) = read(Csv(), text.encode(), "run.csv")
    assert chunk.records["mass"].to_list() == values
