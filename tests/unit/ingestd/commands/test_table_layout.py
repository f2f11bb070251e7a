"""The layout of a table is found in its rows, or it is a doubt that names the option for it."""

from __future__ import annotations

import pytest

from ingestd.commands.initial_configuration.table_layout import find_layout

UNITS = frozenset({"kg", "mm", "s", "min"})


def rows(text: str) -> list[tuple[int, list[str]]]:
    """The rows of a drawing; blank ones have a number, and are left out."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return [(number, line.split(";")) for number, line in enumerate(lines, start=1) if line.strip(";")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("part;mass\nA;1\nB;2", (1, 1, False)),
        ("part;mass\nA;1,5", (1, 1, False)),
        ("Rig;north;\nNo;12;\n\npart;mass;length\nA;1;2\nB;3;4", (4, 1, False)),
        ("Mass budget\npart;mass\nA;1\nB;2", (2, 1, False)),
        ("part;mass;length\n[-];kg;mm\nA;1;2\nB;3;4", (1, 1, True)),
        ("part;mass;length\n;kg;mm\nA;1;2", (1, 1, True)),
        ("part;mass;;length;\n;min;max;min;max\nA;1;2;3;4\nB;1;2;3;4", (1, 2, False)),
        ("part;mass;;length;\n;min;max;min;max\n;kg;kg;mm;mm\nA;1;2;3;4\nB;1;2;3;4", (1, 2, True)),
        ("Rig\n\npart;mass;;day\n;kg;g;\nA;1;2;2026-01-01\nB;3;4;2026-01-02", (3, 2, False)),
        # Two records below a unit row are two thirds of the last third.
        ("a\na\na;a\na\na;a\npart;mass;length\n;kg;mm\nA-1;1;2\nA-2;3;4", (6, 1, True)),
        ("part;null\n;kg\nA;1\nB;2", (1, 1, True)),
        ("part;mass;mass\nA;1;2\nB;3;4", (1, 1, False)),
        ("day;mass\n2026-01-01;n/a\n2026-01-02;1\n2026-01-03;2", (1, 1, False)),
        ("part;mass\nA;1\nB;2\nC;3\nD;4\nE;5\nF;no\nG;6\nH;7\nI;8\nJ;9", (1, 1, False)),
        ("part;mass\nA1;1 234,5\nA2;1,5\nA3;2", (1, 1, False)),
        ("part;mass\nA1;5,25\nA2;\u22125,25\nA3;7,1", (1, 1, False)),
        ("part;mass\nA1;5,2\nA2;<0,05\nA3;7,1", (1, 1, False)),
        ("Rig\npart;mass;length\nA1;1;2\nA2;n.d.;3\nA3;1;4", (2, 1, False)),
        ("part;price\nA1;12,50 €\nA2;1\nA3;2", (1, 1, False)),
        ("part;mass\nA1;n.d.\nA2;5,2\nA3;7,1", (1, 1, False)),
        ("part;state\nA-1;open\nA-2;done", (1, 1, False)),
        ("name;state\nbolt;open\nnut;open\nwasher;open\nscrew;open", (1, 1, False)),
    ],
)
def test_the_header_and_the_units_are_found(text: str, expected: tuple[int, int, bool]) -> None:
    found = find_layout(rows(text), UNITS.__contains__)
    assert found is not None
    assert ((found.header_row, found.header_rows, found.units_row), found.doubts) == (expected, {})
    assert found.repeats_names == ("mass;mass" in text)


@pytest.mark.parametrize(
    ("text", "expected", "option", "sentence"),
    [
        ("Rig;north\nNo;12\npart;mass\nA;1\nB;2\nC;3", 3, "--header-row", "The header may be in row 1 or 3."),
        ("part;mass\nA1;5,2\nA2;OL\nA3;7,1", 1, "--header-row", "The header may be in row 1 or 3."),
        ("Teil;Masse\npart;mass\nA;1\nB;2", 2, "--header-row", "The header may be in row 1 or 2."),
        ("P-1;0.10\nP-2;0.20", 0, "--header-row", "The cells of row 1 are values"),
        ("1;2\n3;4", 0, "--header-row", "The cells of row 1 are values"),
        ("part;2025;2026\na;1;2", 1, "--header-row", "Nothing shows whether row 1 is the header"),
        ("owner;team\nAnn;Red\nBob;Blue", 1, "--header-row", "Nothing shows whether row 1 is the header"),
        ("part;mass\n;furlongs\nA;1\nB;2", 1, "--units-row", "Row 2 may hold the units of the columns."),
    ],
)
def test_what_the_rows_do_not_prove_is_a_doubt(text: str, expected: int, option: str, sentence: str) -> None:
    found = find_layout(rows(text), UNITS.__contains__)
    assert found is not None
    assert found.header_row == expected
    assert sentence in found.doubts[option]


def test_a_given_header_row_is_taken_with_the_rows_that_complete_it() -> None:
    text = "Rig;north\npart;mass;\n;min;max\n;kg;kg\nA;1;2\nB;3;4"
    found = find_layout(rows(text), UNITS.__contains__, header_row=2)
    assert found is not None
    assert (found.header_row, found.header_rows, found.units_row) == (2, 2, True)
    none = find_layout(rows(text), UNITS.__contains__, header_row=0)
    assert none is not None
    assert (none.header_row, none.last) == (0, 2)
    assert find_layout(rows(text), UNITS.__contains__, header_row=9) is None


def test_a_single_row_and_rows_without_cells_are_no_table() -> None:
    assert find_layout(rows("part;mass"), UNITS.__contains__) is None
    assert find_layout([], UNITS.__contains__) is None
