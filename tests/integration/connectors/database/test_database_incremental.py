"""Incremental reading returns rows after the last cursor value, without loss or repetition."""

import json
from typing import Any

import pytest

from ingestd.sdk import Batch, Cursor, Partition

FIRST, SECOND = "2026-01-02 03:04:05.000001+00:00", "2026-01-02 03:04:05.000002+00:00"


@pytest.fixture
def parts(database: Any) -> Any:
    kind = "timestamptz" if database.kind == "postgresql" else "TEXT"
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT, at {kind})")
    return database


def put(parts: Any, number: int, value: str, at: str) -> None:
    parts.do(f"DELETE FROM {parts.name('p')} WHERE id = {number}")
    parts.do(f"INSERT INTO {parts.name('p')} VALUES ({number}, '{value}', '{at}')")


def connector(parts: Any, **more: Any) -> Any:
    return parts.connector(**{"table": parts.name("p"), "mode": "incremental", "cursor": "at", "key": "id"} | more)


def read(source: Any, cursor: Cursor | None) -> list[Batch]:
    (partition,) = source.partitions()
    assert not partition.snapshot
    through_json = None if cursor is None else json.loads(json.dumps(cursor))
    return list(source.read(partition, through_json))


def ids(batches: list[Batch]) -> list[str]:
    return [row["id"] for batch in batches for row in batch.records.iter_rows(named=True)]


def test_rows_with_the_same_time_are_neither_lost_nor_repeated(parts: Any) -> None:
    source = connector(parts)
    put(parts, 1, "a", FIRST)
    put(parts, 2, "a", FIRST)
    first = read(source, None)
    assert ids(first) == ["1", "2"]
    assert read(source, first[-1].cursor) == []
    put(parts, 0, "late, of the same instant", FIRST)
    put(parts, 3, "a", SECOND)
    second = read(source, first[-1].cursor)
    assert ids(second) == ["0", "3"]
    assert read(source, second[-1].cursor) == []


def test_a_row_that_changes_without_its_time_is_read_again(parts: Any) -> None:
    source = connector(parts)
    put(parts, 1, "a", FIRST)
    put(parts, 2, "a", FIRST)
    cursor = read(source, None)[-1].cursor
    put(parts, 2, "b", FIRST)
    assert ids(read(source, cursor)) == ["2"]


def test_reading_that_resumes_after_any_batch_returns_exactly_the_rest(parts: Any) -> None:
    for number in range(12):
        put(parts, number, "a", [FIRST, SECOND][number > 7])
    batches = read(connector(parts, batch_rows=3), None)
    assert [batch.last for batch in batches] == [False, False, False, True]
    for at, batch in enumerate(batches):
        assert ids(read(connector(parts, batch_rows=5), batch.cursor)) == ids(batches[at + 1 :])


def test_a_query_can_be_read_incrementally(parts: Any) -> None:
    source = connector(parts, table=None, query=f"SELECT id, at FROM {parts.name('p')} WHERE v <> 'x';")
    put(parts, 1, "x", FIRST)
    put(parts, 2, "y", FIRST)
    first = read(source, None)
    assert ids(first) == ["2"]
    put(parts, 3, "y", SECOND)
    assert ids(read(source, first[-1].cursor)) == ["3"]


@pytest.mark.parametrize("kind", ["BIGINT", "INTEGER", "NUMERIC(20,6)", "DOUBLE PRECISION", "TEXT"])
def test_the_cursor_is_compared_with_its_own_type(database: Any, kind: str) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, at {kind})")
    source = connector(database)
    values = ["a", "b", "ba", "c"] if kind == "TEXT" else ["9", "10", "11", "100"]
    for number, value in enumerate(values[:2]):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, '{value}')")
    first = read(source, None)
    assert ids(first) == ["0", "1"]
    for number, value in enumerate(values[2:], start=2):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, '{value}')")
    assert ids(read(source, first[-1].cursor)) == ["2", "3"]


def test_a_row_without_a_cursor_value_is_rejected_at_the_first_reading_and_reported_by_verify(parts: Any) -> None:
    parts.do(f"INSERT INTO {parts.name('p')} VALUES (1, 'a', NULL), (2, 'b', '{FIRST}')")
    source = connector(parts)
    first = read(source, None)
    assert ids(first) == ["2"]
    (reject,) = [reject for batch in first for reject in batch.rejects]
    assert (reject.position, reject.field) == ("id=1", "at")
    assert read(source, first[-1].cursor) == []
    (step,) = [step for step in source.verify() if step.name == "cursor"]
    assert step.outcome == "failed"
    assert step.sentence.startswith("1 rows have no at")


def test_an_empty_table_has_no_batches(parts: Any) -> None:
    assert read(connector(parts), None) == []
    assert Partition(name="p").name == "p"
