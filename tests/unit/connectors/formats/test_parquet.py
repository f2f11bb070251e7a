"""Parquet: no row is lost silently, and a column that can't be read costs nothing but itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from connectors.formats.columnar import Parquet, parquet, typed_columns
from ingestd.sdk.formats import RecordChunk
from tests.support.format_records import parse, parser_sentence
from tests.support.parquet_footer import (
    CHUNK_PATH,
    COMPRESSED,
    CONVERTED,
    DATA_OFFSET,
    GROUPS,
    LOGICAL,
    META,
    NAME,
    ROWS,
    VALUES,
    chunk,
    edit_footer,
    element,
)  # fmt: skip

BINARY, I32, I64, STRUCT = 8, 5, 6, 12
FRAME = pl.DataFrame({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"]})


def parquet_file(frame: pl.DataFrame = FRAME, *, rows: int = 2) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, row_group_size=rows, compression="uncompressed")
    return out.getvalue()


def read(data: bytes) -> list[RecordChunk]:
    return parse(Parquet(), data, "a.parquet")


def records(chunks: list[RecordChunk]) -> list[dict[str, Any]]:
    return [row for one in chunks for row in one.records.rows(named=True)]


def refused(chunks: list[RecordChunk]) -> dict[str, str]:
    return {one.name: one.reason for one in chunks[-1].unreadable if one.rows is None}


def sentence(data: bytes) -> str:
    return parser_sentence(Parquet(), data, "a.parquet")


def annotated(frame: pl.DataFrame, name: str, annotation: Any, *, rows: int = 2) -> bytes:
    """Return a file in which the first element of a name has another annotation."""

    def annotate(footer: Any) -> None:
        one = element(footer, name)
        for number in (CONVERTED, LOGICAL):
            one.pop(number, None)
        one.update(annotation)

    return edit_footer(parquet_file(frame, rows=rows), annotate)


A = [{"a": "1"}, {"a": "2"}, {"a": "3"}, {"a": "4"}]
"""The first column of `FRAME`."""


@pytest.mark.parametrize("stated", [3, 5, 0])
def test_a_footer_that_counts_other_rows_than_its_row_groups_rejects_the_file(stated: int) -> None:
    data = edit_footer(parquet_file(), lambda footer: footer.update({ROWS: (I64, stated)}))
    assert sentence(data) == (
        f"a.parquet can't be read as Parquet: its footer counts {stated} rows, but its row groups have 4."
    )


def test_a_damaged_page_of_the_last_row_group_costs_the_values_of_its_column_and_no_row() -> None:
    data = bytearray(parquet_file())
    footers: list[Any] = []
    edit_footer(bytes(data), footers.append)
    meta = chunk(footers[0], 1, 1)[META][1]
    data[meta[DATA_OFFSET][1] : meta[DATA_OFFSET][1] + meta[COMPRESSED][1]] = b"\xff" * meta[COMPRESSED][1]
    chunks = read(bytes(data))
    assert [row["a"] for row in records(chunks)] == ["1", "2", "3", "4"]
    assert refused(chunks)["b"].startswith("it is damaged, or stored in a way that is not supported (")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda one: one[META][1].update({DATA_OFFSET: (I64, 10**9)}), "its values are beyond the end of the file"),
        (lambda one: one[META][1].update({VALUES: (I64, 1)}), "it has 1 values for 2 rows"),
        (lambda one: one.update({CHUNK_PATH: (BINARY, b"part-2.parquet")}), "its values are in another file"),
        (lambda one: one.pop(META), "it is encrypted"),
    ],
)
def test_a_footer_that_contradicts_a_column_costs_that_column(edit: Callable[[Any], None], reason: str) -> None:
    chunks = read(edit_footer(parquet_file(), lambda footer: edit(chunk(footer, 1, 1))))
    assert records(chunks) == A
    assert refused(chunks) == {"b": reason}


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ({LOGICAL: (STRUCT, {99: (STRUCT, {})})}, "a logical type that is not known"),
        ({LOGICAL: (STRUCT, {})}, "a logical type that is not known"),
        ({LOGICAL: (STRUCT, {13: (STRUCT, {})})}, "BSON"),
        ({LOGICAL: (STRUCT, {17: (STRUCT, {})})}, "GEOMETRY"),
        ({CONVERTED: (I32, 21)}, "INTERVAL"),
    ],
)
def test_a_column_of_a_type_without_text_is_left_out_and_the_others_are_read(annotation: Any, kind: str) -> None:
    chunks = read(annotated(FRAME, "b", annotation))
    assert records(chunks) == A
    assert refused(chunks) == {"b": f"it holds {kind}, which has no text form"}


def test_a_variant_is_left_out() -> None:
    frame = pl.DataFrame({"a": [1], "v": [{"metadata": b"\1", "value": b"\2"}]})
    chunks = read(annotated(frame, "v", {LOGICAL: (STRUCT, {16: (STRUCT, {})})}))
    assert (records(chunks), refused(chunks)) == ([{"a": "1"}], {"v": "it holds VARIANT, which has no text form"})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        # Without an annotation the repeated field is a list of its own, inside a group.
        ({}, ['{"list":[{"element":1},{"element":2}]}', None, '{"list":[]}']),
        # MAP as Hive writes it, with an optional key.
        ({CONVERTED: (I32, 1)}, ["[1,2]", None, "[]"]),
    ],
)
def test_a_repeated_field_is_a_list_whatever_its_annotation(annotation: Any, expected: list[str | None]) -> None:
    frame = pl.DataFrame({"l": [[1, 2], None, []]}, schema={"l": pl.List(pl.Int64)})

    def rename(footer: Any) -> None:
        [inner] = [one for one in footer[2][1][1] if one[NAME][1] in {b"element", b"item"}]
        inner[NAME] = (BINARY, b"element")

    chunks = read(edit_footer(annotated(frame, "l", annotation, rows=3), rename))
    assert [row["l"] for row in records(chunks)] == expected
    assert refused(chunks) == {}


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_timestamp_of_the_old_annotation_is_in_utc(unit: Any) -> None:
    frame = pl.DataFrame(
        {"t": [datetime(2026, 1, 2, 3, 4, 5, 125_000, tzinfo=UTC)]}, schema={"t": pl.Datetime(unit, "UTC")}
    )

    data = annotated(frame, "t", {CONVERTED: (I32, 9 if unit == "ms" else 10)})
    assert records(read(data)) == [{"t": "2026-01-02T03:04:05.125+00:00"}]


def test_columns_of_one_name_are_left_out() -> None:
    frame = pl.DataFrame({"a": [1], "b": [2], "c": [3]})
    data = edit_footer(parquet_file(frame), lambda footer: element(footer, "b").update({NAME: (BINARY, b"a")}))
    chunks = read(data)
    assert (records(chunks), refused(chunks)) == ([{"c": "3"}], {"a": "the file has several columns of this name"})


def test_a_file_without_a_readable_column_is_rejected_with_the_reason() -> None:
    data = edit_footer(parquet_file(FRAME.select("a")), lambda footer: chunk(footer, 0, 0).pop(META))
    assert sentence(data) == "a.parquet has no column that can be read (column 'a': it is encrypted)."


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PAR1", "it is too short for a Parquet file"),
        (parquet_file()[:-1], "it does not end with PAR1; it is incomplete or of another format"),
        (parquet_file()[:-4] + b"PARE", "its footer is encrypted"),
        (parquet_file()[:-8] + b"\xff\xff\xff\x7fPAR1", "its footer is longer than the file"),
        (parquet_file()[:-8] + b"\1\0\0\0PAR1", "its footer is damaged"),
        (
            edit_footer(parquet_file(), lambda footer: footer.pop(GROUPS)),
            "its footer counts 4 rows, but its row groups have 0",
        ),
    ],
)
def test_a_file_that_is_no_parquet_is_rejected_with_the_reason(data: bytes, why: str) -> None:
    assert sentence(data) == f"a.parquet can't be read as Parquet: {why}."


@pytest.mark.parametrize("group_rows", [1, 7, 1000])
def test_parts_of_any_size_give_the_same_rows_in_their_order(group_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parquet, typed_columns):
        monkeypatch.setattr(module, "ROWS", 20)
        monkeypatch.setattr(module, "PART_BYTES", 300)
    frame = pl.DataFrame({"a": range(1000), "l": [[n] * (n % 3) for n in range(1000)]})
    chunks = read(parquet_file(frame, rows=group_rows))
    assert [(row["a"], row["l"]) for row in records(chunks)] == [
        (str(n), str([n] * (n % 3)).replace(" ", "")) for n in range(1000)
    ]
    assert [position for one in chunks for position in one.positions] == list(range(1, 1001))
