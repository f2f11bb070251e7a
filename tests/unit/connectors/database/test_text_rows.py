"""Rows that arrive as lines of text are the texts that were sent."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.database.frames import parse_lines
from connectors.database.port import ResultColumn

ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
VALUES = st.one_of(st.none(), st.sampled_from(["", "\\N", "\\", "\ufeff", "\r", '"', "\n"]), st.text())


@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1)))
def test_any_texts_and_nulls_arrive_as_they_are(rows: list[tuple[str | None, ...]]) -> None:
    lines = [
        b"\t".join(b"\\N" if text is None else "".join(ESCAPES.get(c, c) for c in text).encode() for text in row)
        + b"\n"
        for row in rows
    ]
    frame = parse_lines(lines, [ResultColumn(name=f"c{at}", type="text") for at in range(len(rows[0]))])
    assert frame.records.rows() == rows
    assert frame.faults == {}


def test_a_field_that_is_not_utf8_is_a_fault_of_its_row_only() -> None:
    columns = [ResultColumn(name=name, type="text") for name in "ab"]
    frame = parse_lines([b"x\ty\n", b"\xff\t\xc3\xa9\n", b"\\N\t\n"], columns)
    assert frame.records.rows() == [("x", "y"), (None, "é"), (None, "")]
    assert {row: fault.field for row, fault in frame.faults.items()} == {1: "a"}
