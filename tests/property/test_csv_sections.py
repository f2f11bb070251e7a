"""A CSV file read without its known sections has the records of a complete reading, for any earlier edit."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.formats.csv.dialect import DEFAULT_LAYOUT, Dialect, Layout
from connectors.formats.csv.reader import read_csv
from ingestd.sdk import Position
from ingestd.sdk.formats.record_chunk import RecordChunk
from tests.support.format_records import positions, rows

LINES = st.sampled_from(
    [
        b"a,1\n", b"b,2\n", b'"c,d",3\n', b'"say ""x""",4\n', b"e,5\r\n", b"f,\n", b",\n", b'g,"6\n', b'6",7\n', b'h,"\n"\n',
        b"\n", b"\r\n", b"i\n", b"j,1,2\n", b'k"l,8\n', b'"m"n,9\n', b"\xc3\xa4,1\n", b"\xff,1\n", b"o\0,1\n", b"p,1\rq,2\n",
        b"#r,1\n", b"name,value\n", b"value,name\n",
        b"\xef\xbb\xbfs,1\n", b"t,1\r", b'"u\nv",2\n', b'""""\n',
        b"long " + b"x" * 2100 + b",1\n", b'"open ' + b"x" * 2100 + b"\n",
    ]
)  # fmt: skip
PLAIN = st.integers(0, 30).map(lambda number: b"part-%d,%d\n" % (number, number))
"""Lines as nearly all files have them; other lines are what may go wrong."""
BODIES = st.lists(st.one_of(PLAIN, PLAIN, PLAIN, LINES), max_size=30)
Row = tuple[Position, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """``kind`` of change to the lines, and where."""

    kind: str
    at: int
    line: bytes
    to: int


EDITS = st.lists(
    st.builds(
        Edit,
        kind=st.sampled_from(["insert", "delete", "change", "move", "duplicate", "quote", "cut"]),
        at=st.integers(0, 30),
        line=st.one_of(PLAIN, LINES),
        to=st.integers(0, 30),
    ),
    max_size=4,
)


def edited(lines: Sequence[bytes], edits: Iterable[Edit]) -> list[bytes]:
    """Return the lines after the edits."""
    after = list(lines)
    for edit in edits:
        at, to = edit.at % (len(after) + 1), edit.to % (len(after) + 1)
        match edit.kind:
            case "insert":
                after.insert(at, edit.line)
            case "delete":
                del after[at : at + 1]
            case "change":
                after[at : at + 1] = [edit.line]
            case "move":
                moved = after[at : at + 1]
                del after[at : at + 1]
                after[to:to] = moved
            case "duplicate":
                after[to:to] = after[at : at + 3]
            case "quote" if at < len(after):
                after[at] = (
                    after[at][: edit.to % (len(after[at]) + 1)] + b'"' + after[at][edit.to % (len(after[at]) + 1) :]
                )
            case "cut" if at < len(after):
                after[at] = after[at].rstrip(b"\r\n")
            case _:
                pass
    return after


@dataclass(kw_only=True)
class Sizes:
    section_bytes: int
    block_bytes: int
    record_bytes: int
    comment: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    layout: Layout = field(default_factory=Layout)

    def read(self, data: bytes, known: dict[bytes, int] | None) -> list[RecordChunk]:
        return list(
            read_csv(
                io.BytesIO(data), "x.csv", dialect=Dialect(comment=self.comment, quote=self.quote), encoding=self.encoding,
                layout=self.layout, block_bytes=self.block_bytes, record_bytes=self.record_bytes, known=known,
                section_bytes=self.section_bytes,
            )
        )  # fmt: skip


SIZES = st.builds(
    Sizes,
    section_bytes=st.sampled_from([1, 8, 20, 50]),
    block_bytes=st.sampled_from([16, 64, 500, 2**16]),
    record_bytes=st.sampled_from([2000, 2**16]),
    comment=st.sampled_from(["", "#"]),
    quote=st.sampled_from(['"', ""]),
    layout=st.sampled_from([Layout(header_row=1), Layout(header_row=1, ragged="fill")]),
)


def rows_of(chunks: Iterable[RecordChunk]) -> list[Row]:
    chunks = list(chunks)
    return list(zip(positions(chunks), rows(chunks), strict=True))


def content_of(chunks: Iterable[RecordChunk]) -> tuple[list[Row], list[tuple[Position, str, dict[str, str | None]]]]:
    """Return the records and the rejects, each with its position.

    The number of lines of a record above the limit depends on where blocks end, if it is never closed.
    """
    chunks = list(chunks)
    rejects = [
        (reject.position, re.sub(r"and spans \d+", "and spans", reject.reason), dict(reject.record))
        for chunk in chunks
        for reject in chunk.rejects
    ]
    return rows_of(chunks), rejects


def by_section(chunks: Iterable[RecordChunk]) -> dict[bytes, list[tuple[str | None, ...]]]:
    """Return the records of each section with a digest, of a reading without known ones."""
    found: dict[bytes, list[tuple[str | None, ...]]] = {}
    for chunk in chunks:
        left = iter(chunk.records.rows())
        for section in chunk.sections:
            assert not section.known
            records = [next(left) for _ in range(section.records)]
            if section.digest:
                assert found.setdefault(section.digest, records) == records, "equal digests have equal records"
        assert next(left, None) is None
    return found


def without_positions(found: Iterable[Row]) -> list[tuple[str | None, ...]]:
    return [row for _, row in found]


@settings(max_examples=400)
@given(before=BODIES, edits=EDITS, sizes=SIZES)
@example(
    before=[b"a,1\n"] * 9, edits=[Edit(kind="quote", at=2, line=b"", to=0)],
    sizes=Sizes(section_bytes=1, block_bytes=16, record_bytes=2**16),
)  # fmt: skip
def test_a_reading_without_known_sections_has_the_records_of_a_complete_one(
    before: list[bytes], edits: list[Edit], sizes: Sizes
) -> None:
    head = b"name,value\n"
    old, new = head + b"".join(before), head + b"".join(edited(before, edits))
    first = sizes.read(old, {})
    assert content_of(first) == content_of(sizes.read(old, None))

    stored = by_section(first)
    known = {digest: len(records) for digest, records in stored.items()}
    whole = sizes.read(new, None)
    second = sizes.read(new, known)
    read_rows, rejects = content_of(second)
    expected_rows, expected_rejects = content_of(whole)
    assert rejects == expected_rejects
    assert second[-1].end == whole[-1].end

    completed: list[tuple[str | None, ...]] = []
    for chunk in second:
        read = iter(chunk.records.rows())
        for section in chunk.sections:
            assert section.known <= (section.digest in stored)
            completed += stored[section.digest] if section.known else [next(read) for _ in range(section.records)]
        assert next(read, None) is None
    assert completed == without_positions(expected_rows), "records and their order"
    assert set(read_rows) <= set(expected_rows), "the positions of what was read"
    if not edits:
        assert sum(section.records for chunk in second for section in chunk.sections if section.known) == sum(
            len(records) for chunk in first for section in chunk.sections if section.digest
            for records in [stored[section.digest]]
        )  # fmt: skip


@pytest.mark.parametrize("edit", ["insert", "delete", "change"])
def test_one_edit_changes_few_sections(edit: str) -> None:
    sizes = Sizes(section_bytes=1000, block_bytes=2**16, record_bytes=2**16)
    head, lines = b"name,value\n", [b"part-%d,%d\n" % (number, number) for number in range(20_000)]
    known = {digest: len(found) for digest, found in by_section(sizes.read(head + b"".join(lines), {})).items()}
    for number in range(0, 20_000, 1_999):
        changed = edited(lines, [Edit(kind=edit, at=number, line=b"new,1\n", to=0)])
        found = sizes.read(head + b"".join(changed), known)
        parsed = [section for chunk in found for section in chunk.sections if not section.known]
        assert (("new", "1") in without_positions(rows_of(found))) == (edit != "delete")
        assert len(parsed) <= 5


def test_other_columns_units_or_dialects_make_other_digests() -> None:
    body = b"a;1,5\n" * 50

    def digests(
        head: bytes, *, record_bytes: int = 2**16, quote: str = '"', layout: Layout = DEFAULT_LAYOUT
    ) -> set[bytes]:
        sizes = Sizes(section_bytes=20, block_bytes=2**16, record_bytes=record_bytes, quote=quote, layout=layout)
        return {section.digest for chunk in sizes.read(head + body, {}) for section in chunk.sections}

    first = digests(b"name,value\n")
    assert first
    assert b"" not in first
    assert digests(b"name,value\n") == first
    others = [
        digests(b"name,mass\n"),
        digests(b"name,value\n", quote="'"),
        digests(b"name,value\n", record_bytes=2**15),
        digests(b"name,value\nm,kg\n", layout=Layout(units_row=True)),
        digests(b"name,value\nm,g\n", layout=Layout(units_row=True)),
        digests(b"name,value\n", layout=Layout(ragged="fill")),
    ]
    for number, other in enumerate(others):
        assert not other & first
        assert not any(other & another for another in others[:number])


def test_sections_of_utf_16_are_compared_too() -> None:
    sizes = Sizes(section_bytes=50, block_bytes=256, record_bytes=2**16, encoding="detect")
    text = "name,value\n" + "".join(f"pärt-{number},{number}\n" for number in range(200))
    stored = by_section(sizes.read(text.encode("utf-16"), {}))
    known = {digest: len(found) for digest, found in stored.items()}
    found = sizes.read(text.replace("pärt-77,77", "pärt-77,78").encode("utf-16"), known)
    assert (78, ("pärt-77", "78")) not in rows_of(found)
    assert (79, ("pärt-77", "78")) in rows_of(found)
    assert len(rows_of(found)) < 60
