"""Every value is the database's own text."""

from typing import Any

import polars as pl
import pytest

from ingestd.sdk import Batch, Partition


def whole(connector: Any) -> list[Batch]:
    (partition,) = connector.partitions()
    return list(connector.read(partition, None))


def test_sqlite_integers_reals_texts_and_nulls(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (part TEXT, a, b REAL, c INTEGER)")
    sqlite.do("INSERT INTO p VALUES ('00417', '0.10', 0.1, 9223372036854775807), ('é', NULL, 1e-7, -1), ('', 7, 3, 0)")
    (batch,) = whole(sqlite.connector(table="p"))
    assert batch.records.rows() == [
        ("00417", "0.10", "0.1", "9223372036854775807"),
        ("é", None, "1e-07", "-1"),
        ("", "7", "3.0", "0"),
    ]
    assert batch.records.dtypes == [pl.String] * 4
    assert batch.positions.to_list() == [1, 2, 3]
    assert batch.last


def test_sqlite_binary_and_undecodable_values_are_rejected_and_their_neighbours_are_read(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (part TEXT, v)")
    sqlite.do("INSERT INTO p VALUES ('a', '1'), ('b', x'00ff'), ('c', CAST(x'ff' AS TEXT)), ('d', '4')")
    (batch,) = whole(sqlite.connector(table="p", key="part"))
    assert batch.records.rows() == [("a", "1"), ("d", "4")]
    assert batch.positions.to_list() == ["part=a", "part=d"]
    assert [(r.position, r.field) for r in batch.rejects] == [("part=b", "v"), ("part=c", "v")]
    assert "binary data" in batch.rejects[0].reason
    assert "not UTF-8" in batch.rejects[1].reason


def test_postgresql_prints_its_own_values(postgresql: Any) -> None:
    query = """
        SELECT 1.10::numeric AS n, 1234567890123456789012345678901234567890::numeric AS big, 1e-7::float8 AS f,
               0.1::float4 AS f4, true AS yes, false AS no, NULL::text AS nothing, '12:30' AS colon, '100%' AS percent,
               timestamptz '2026-01-02 03:04:05.123456+02' AS tz, timestamp '2026-01-02 03:04:05' AS ts,
               date '2026-01-02' AS d, '{"a": 1.0}'::json AS j, ARRAY[1, 2] AS l, 'x'::bytea AS raw -- the end
    """
    elsewhere = postgresql.url + ("&" if "?" in postgresql.url else "?") + "options=-ctimezone%3DAsia/Tokyo"
    (batch,) = whole(postgresql.connector(url=elsewhere, query=query))
    assert batch.records.row(0, named=True) == {
        "n": "1.10",
        "big": "1234567890123456789012345678901234567890",
        "f": "1e-07",
        "f4": "0.1",
        "yes": "true",
        "no": "false",
        "nothing": None,
        "colon": "12:30",
        "percent": "100%",
        "tz": "2026-01-02T01:04:05.123456+00:00",
        "ts": "2026-01-02T03:04:05",
        "d": "2026-01-02",
        "j": '{"a": 1.0}',
        "l": "{1,2}",
        "raw": "\\x78",
    }


def test_a_table_is_read_in_batches_of_which_the_last_says_so(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, rev TEXT)")
    for number in range(7):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, 'B')")
    batches = whole(database.connector(table=database.name("p"), key=["id", "rev"], batch_rows=3))
    assert [batch.records.height for batch in batches] == [3, 3, 1]
    assert [batch.last for batch in batches] == [False, False, True]
    assert all(batch.header for batch in batches)
    assert [place for batch in batches for place in batch.positions] == [f"id={n},rev=B" for n in range(7)]


def test_a_table_without_rows_is_a_snapshot_of_nothing(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER)")
    (batch,) = whole(database.connector(table=database.name("p")))
    assert batch.last
    assert batch.records.height == 0


def test_names_are_quoted_where_they_need_it(database: Any) -> None:
    database.do(f"""CREATE TABLE {database.name('"Mass Budget"')} ("Part No" TEXT, "order" TEXT, "at:x%" TEXT)""")
    database.do(f"""INSERT INTO {database.name('"Mass Budget"')} VALUES ('A', '1', 'z')""")
    connector = database.connector(
        table=database.name("Mass Budget"), key=["Part No", "at:x%"]
    )
    (batch,) = whole(connector)
    assert batch.records.rows() == [("A", "1", "z")]


def test_a_row_without_its_key_is_rejected(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT)")
    database.do(f"INSERT INTO {database.name('p')} VALUES (NULL, 'x'), (2, 'y')")
    (batch,) = whole(database.connector(table=database.name("p"), key="id"))
    assert batch.records.rows() == [("2", "y")]
    assert batch.rejects[0].field == "id"


def test_the_database_is_never_written_to(database: Any) -> None:
    from ingestd.sdk import SourceBroken, SourceError

    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER)")
    for query in ["DELETE FROM p", "SELECT 1) AS q; DELETE FROM p; --"]:
        connector = database.connector(query=query)
        with pytest.raises(SourceError):
            list(connector.read(Partition(name="query"), None))
    if database.kind == "postgresql":
        database.do(f"CREATE SEQUENCE {database.name('s')}")
        connector = database.connector(query=f"SELECT nextval('{database.name('s')}')")
        with pytest.raises(SourceBroken, match="read-only transaction"):
            list(connector.read(Partition(name="query"), None))
