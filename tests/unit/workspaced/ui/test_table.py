from __future__ import annotations

import pytest

from workspaced.core.problems import Invalid
from workspaced.ui.edit.table import (
    KEY_AND_VALUE,
    ONE_ROW_EACH,
    TableReading,
    cells_of,
    description,
    guess,
    items_of,
    texts_among_numbers,
    with_decimal_point,
)


def read(text: str, *, most: int = 100) -> list[tuple[int, str, str]]:
    rows = cells_of(text)
    items = items_of(rows, guess(rows), most=most)
    return [(one.row, one.item["key"], one.item["value"]) for one in items]


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
def test_a_table_of_keys_and_values_is_recognised(delimiter: str) -> None:
    text = "key,value\n00417.mass,0.10\n\n00418.mass,=1+1\n".replace(",", delimiter)
    assert read(text) == [(2, "00417.mass", "0.10"), (4, "00418.mass", "=1+1")]


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_a_comma_in_a_title_does_not_separate_the_cells(delimiter: str) -> None:
    text = "Masses of the bench, 2026\n\nPart;Mass\na;0,10\nb;0,20\n".replace(";", delimiter)
    assert read(text) == [(4, "a", "0,10"), (5, "b", "0,20")]


def test_two_columns_without_names_are_keys_and_values() -> None:
    assert read("a\t 1 \nb\t\n") == [(1, "a", " 1 "), (2, "b", "")]


def test_a_first_row_is_one_of_names_if_it_alone_has_no_number() -> None:
    assert read("part,mass\n00417,0.10\n00418,-.5 kg\n") == [(2, "00417", "0.10"), (3, "00418", "-.5 kg")]
    assert read("material,steel\n00417,0.10\n00418,none\n")[0] == (1, "material", "steel")
    assert read("material,steel\n")[0] == (1, "material", "steel")


def test_each_column_of_a_wide_table_is_a_value_of_its_row() -> None:
    assert read('part;mass;cost\n7;1,5;\n8;"a;\nb";2\n') == [
        (2, "7.mass", "1,5"),
        (3, "8.mass", "a;\nb"),
        (3, "8.cost", "2"),
    ]


def test_a_column_of_types_is_used() -> None:
    rows = cells_of("value,key,dataType\n1,a,text\n2,b,\n")
    reading = TableReading(shape=KEY_AND_VALUE, has_header=True, decimal_comma=False)
    assert [one.item for one in items_of(rows, reading, most=9)] == [
        {"key": "a", "value": "1", "dataType": "text"},
        {"key": "b", "value": "2"},
    ]


@pytest.mark.parametrize(
    ("text", "first", "names", "items"),
    [
        ("Mass budget\n\nkey;value\na;1,5\n", 3, True, [(4, "a", "1,5")]),
        ("Mass budget\t\t\n\t\t\npart\tmass\tcost\n7\t1\t2\n", 3, True, [(4, "7.mass", "1"), (4, "7.cost", "2")]),
        ("Budget\npart,mass\n7,1\n8,2\n", 2, True, [(3, "7", "1"), (4, "8", "2")]),
        ("exported 2026-11-27,\nby,anna\nKey,Value\na,1\n", 3, True, [(4, "a", "1")]),
        ("a\t\nb\t1\n", 1, False, [(1, "a", ""), (2, "b", "1")]),
    ],
)
def test_the_row_of_the_names_is_found_below_titles(
    text: str, first: int, names: bool, items: list[tuple[int, str, str]]
) -> None:
    reading = guess(cells_of(text))
    assert (reading.first_row, reading.has_header) == (first, names)
    assert read(text) == items


def test_what_was_decided_is_a_sentence() -> None:
    rows = cells_of("Budget\n\npart,mass,cost\n7,1,2\n")
    assert description(rows, guess(rows)) == (
        "Row 3 has the names of the columns: part, mass, cost. Rows 1 to 2 are left out. "
        "Each cell after the first column is an entry."
    )
    rows = cells_of("a\t1\n")
    assert description(rows, guess(rows)) == "No row has names of columns. Each row is an entry."


def test_texts_are_found_where_a_column_has_numbers_otherwise() -> None:
    rows = cells_of("part,mass,note\n1,1.5,a\n2,2,7\n3,n/a,b\n4,-3e2,\n5,,c\n")
    items = items_of(rows, guess(rows), most=99)
    assert [(items[index].row, items[index].column) for index in sorted(texts_among_numbers(items))] == [(4, "mass")]


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("1,5", "1.5"),
        ("-1.234,50", "-1234.50"),
        ("1\u202f234\u202f567,8", "1234567.8"),
        ("1.234.567", "1234567"),
        ("12.34,5", "12.34,5"),
        ("0.500", "0.500"),
        ("-0.125", "-0.125"),
        ("0.500,5", "0.500,5"),
        ("1,5,2", "1,5,2"),
        ("1.5", "1.5"),
        ("00417", "00417"),
        ("a,b", "a,b"),
        ("", ""),
    ],
)
def test_only_numbers_with_a_decimal_comma_change(text: str, read_as: str) -> None:
    assert with_decimal_point(text) == read_as


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no entries"),
        ("key,value\n", "no entries"),
        ("a\nb\n", "at least two columns"),
        ("part,mass,cost\n7,,\n", "cells of values are empty"),
        ("key,value\na\n", "Row 2 has 1 cells"),
        ("part,mass,cost\n7,1,2,3\n", "Row 2 has 4 cells"),
        ('key,value\n"a,1\n', "can't be read as a table"),
        ("key,value\na,1\nb,2\nc,3\n", "up to 2"),
    ],
)
def test_a_table_that_means_nothing_is_refused_with_its_reason(text: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        read(text, most=2)


def test_a_wide_table_needs_its_names() -> None:
    reading = TableReading(shape=ONE_ROW_EACH, has_header=False, decimal_comma=False)
    with pytest.raises(Invalid, match="at least two columns"):
        items_of(cells_of("a,1\n"), reading, most=9)


@pytest.mark.parametrize("shape", [KEY_AND_VALUE, ONE_ROW_EACH])
def test_a_table_is_read_only_to_the_first_entry_too_many(shape: str) -> None:
    invalid = ["x"] if shape == KEY_AND_VALUE else ["x", "1", "2"]
    rows = [["key", "value"], *([f"k{number}", "1"] for number in range(3)), invalid]
    reading = TableReading(shape=shape, has_header=True, decimal_comma=False)
    with pytest.raises(Invalid, match="has more than 2 entries"):
        items_of(rows, reading, most=2)
    with pytest.raises(Invalid, match="Row 5 has"):
        items_of(rows, reading, most=3)
