"""Every value is the text that the database prints."""

from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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


def test_sqlite_binary_and_undecodable_values_are_rejected_and_other_rows_are_read(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (part TEXT, v)")
    sqlite.do("INSERT INTO p VALUES ('a', '1'), ('b', x'00ff'), ('c', CAST(x'ff' AS TEXT)), ('d', '4')")
    (batch,) = whole(sqlite.connector(table="p", key="part"))
    assert batch.records.rows() == [("a", "1"), ("d", "4")]
    assert batch.positions.to_list() == ["part=a", "part=d"]
    assert [(r.position, r.field) for r in batch.rejects] == [("part=b", "v"), ("part=c", "v")]
    assert "binary data" in batch.rejects[0].reason
    assert "not UTF-8" in batch.rejects[1].reason


def test_postgresql_values_are_the_text_that_the_server_prints(postgresql: Any) -> None:
    query = """
        SELECT 1.10::numeric AS n, 1234567890123456789012345678901234567890::numeric AS large, 1e-7::float8 AS f,
               0.1::float4 AS f4, true AS yes, false AS no, NULL::text AS nothing, '12:30' AS colon, '100%' AS percent,
               timestamptz '2026-01-02 03:04:05.123456+02' AS tz, timestamp '2026-01-02 03:04:05' AS ts,
               date '2026-01-02' AS d, '{"a": 1.0}'::json AS j, ARRAY[1, 2] AS l, 'x'::bytea AS raw -- the end
    """
    elsewhere = postgresql.url + ("&" if "?" in postgresql.url else "?") + "options=-ctimezone%3DAsia/Tokyo"
    (batch,) = whole(postgresql.connector(url=elsewhere, query=query))
    assert batch.records.row(0, named=True) == {
        "n": "1.10",
        "large": "1234567890123456789012345678901234567890",
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


def test_a_table_is_read_in_batches_and_the_last_is_marked(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, rev TEXT)")
    for number in range(7):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, 'B')")
    batches = whole(database.connector(table=database.name("p"), key=["id", "rev"], batch_rows=3))
    assert [batch.records.height for batch in batches] == [3, 3, 1]
    assert [batch.last for batch in batches] == [False, False, True]
    assert all(batch.header for batch in batches)
    assert [place for batch in batches for place in batch.positions] == [f"id={n},rev=B" for n in range(7)]


def test_a_table_without_rows_is_an_empty_snapshot(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER)")
    (batch,) = whole(database.connector(table=database.name("p")))
    assert batch.last
    assert batch.records.height == 0


def test_names_are_quoted_if_necessary(database: Any) -> None:
    database.do(f"""CREATE TABLE {database.name('"Mass Budget"')} ("Part No" TEXT, "order" TEXT, "at:x%" TEXT)""")
    database.do(f"""INSERT INTO {database.name('"Mass Budget"')} VALUES ('A', '1', 'z')""")
    connector = database.connector(table=database.name("Mass Budget"), key=["Part No", "at:x%"])
    (batch,) = whole(connector)
    assert batch.records.rows() == [("A", "1", "z")]


def test_the_primary_key_has_the_order_of_the_catalogue_and_a_view_has_none(database: Any) -> None:
    table, view = database.name('"Part List"'), database.name("view_of_parts")
    columns = "mass INTEGER, revision VARCHAR(9), number VARCHAR(9), PRIMARY KEY (number, revision)"
    database.do(f"CREATE TABLE {table} ({columns})")
    database.do(f"CREATE VIEW {view} AS SELECT * FROM {table}")
    assert list(database.connector(table=table).primary_key()) == ["number", "revision"]
    assert list(database.connector(table=view).primary_key()) == []
    assert list(database.connector(query=f"SELECT * FROM {view}").primary_key()) == []


def test_a_column_that_the_index_of_the_primary_key_includes_is_no_part_of_the_key(postgresql: Any) -> None:
    table = postgresql.name("p")
    postgresql.do(
        f"CREATE TABLE {table} (mass int, revision text, number text, PRIMARY KEY (number, revision) INCLUDE (mass))"
    )
    assert list(postgresql.connector(table=table).primary_key()) == ["number", "revision"]


def test_a_row_without_its_key_is_rejected(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT)")
    database.do(f"INSERT INTO {database.name('p')} VALUES (NULL, 'x'), (2, 'y')")
    (batch,) = whole(database.connector(table=database.name("p"), key="id"))
    assert batch.records.rows() == [("2", "y")]
    assert batch.rejects[0].field == "id"


def test_a_key_of_the_text_null_is_not_that_of_a_row_without_its_key(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (a VARCHAR(9), b VARCHAR(9))")
    database.do(f"INSERT INTO {database.name('p')} VALUES (NULL, '1'), ('NULL', '1'), ('x\"', 'y,z')")
    (batch,) = whole(database.connector(table=database.name("p"), key=["a", "b"]))
    assert [str(reject.position) for reject in batch.rejects] == ["a=NULL,b=1"]
    assert sorted(batch.positions) == ['a="NULL",b=1', 'a=x",b="y,z"']


def test_the_database_is_never_modified(database: Any) -> None:
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


ROW = Any
SETTINGS: list[tuple[str, str, dict[str, str], list[ROW]]] = [
    # kind of database, the SELECT, the setting, and what each row becomes: its text, null, or the reason why it is rejected
    ("postgresql", "SELECT v FROM (VALUES (bytea '\\x00ff'), (NULL), ('')) AS t (v)", {}, ["\\x00ff", None, "\\x"]),
    (
        "postgresql",
        "SELECT v FROM (VALUES (bytea '\\x00ff'), (NULL), ('')) AS t (v)",
        {"binary": "hex"},
        ["00ff", None, ""],
    ),
    ("postgresql", "SELECT decode(repeat('ff', 60), 'hex') AS v", {"binary": "base64"}, ["/" * 80]),
    (
        "postgresql",
        "SELECT v FROM (VALUES (bytea '\\x00'), (NULL)) AS t (v)",
        {"binary": "reject"},
        [ValueError("binary"), None],
    ),
    ("sqlite", "SELECT x'00ff' AS v UNION ALL SELECT NULL", {}, [ValueError("binary data"), None]),
    ("sqlite", "SELECT x'00ff' AS v UNION ALL SELECT 'a'", {"binary": "hex"}, ["00ff", "a"]),
    ("sqlite", "SELECT x'00ff' AS v", {"binary": "base64"}, ["AP8="]),
    ("sqlite", "SELECT x'00ff' AS v", {"binary": "reject"}, [ValueError("binary data")]),
    ("mariadb", "SELECT x'00ff' AS v UNION ALL SELECT NULL", {}, [ValueError("binary data"), None]),
    ("mariadb", "SELECT x'00ff' AS v UNION ALL SELECT NULL", {"binary": "hex"}, ["00ff", None]),
    ("mariadb", "SELECT unhex(repeat('ff', 60)) AS v", {"binary": "base64"}, ["/" * 80]),
    ("mariadb", "SELECT x'00ff' AS v", {"binary": "reject"}, [ValueError("binary data")]),
    ("postgresql", "SELECT 'ab'::char(4) AS v", {}, ["ab  "]),
    ("postgresql", "SELECT 'ab'::char(4) AS v", {"char_padding": "trim"}, ["ab"]),
    ("postgresql", "SELECT 'ab  '::text AS v", {"char_padding": "trim"}, ["ab  "]),
    ("mariadb", "SELECT CAST('ab  ' AS CHAR(4)) AS v", {}, ["ab  "]),
    ("postgresql", "SELECT 1234.5::money AS v", {"money": "number"}, ["1234.50"]),
    (
        "postgresql",
        "SELECT v FROM (VALUES ('NaN'::float8), ('-Infinity'), (1)) AS t (v)",
        {},
        ["NaN", "-Infinity", "1"],
    ),
    ("postgresql", "SELECT v FROM (VALUES ('NaN'::numeric), (1.0)) AS t (v)", {"nan": "empty"}, [None, "1.0"]),
    (
        "postgresql",
        "SELECT v FROM (VALUES ('Infinity'::float4), (1)) AS t (v)",
        {"nan": "reject"},
        [ValueError("finite"), "1"],
    ),
    ("postgresql", "SELECT 'NaN'::text AS v", {"nan": "reject"}, ["NaN"]),
    ("sqlite", "SELECT 9e999 AS v UNION ALL SELECT 1.0", {}, ["inf", "1.0"]),
    ("sqlite", "SELECT 9e999 AS v UNION ALL SELECT 1.0", {"nan": "empty"}, [None, "1.0"]),
    ("sqlite", "SELECT -9e999 AS v UNION ALL SELECT 1.0", {"nan": "reject"}, [ValueError("finite"), "1.0"]),
]


@pytest.mark.parametrize(("kind", "query", "setting", "expected"), SETTINGS)
def test_bytes_padding_money_and_nan_are_what_the_setting_says(
    kind: str, query: str, setting: dict[str, str], expected: list[ROW], request: pytest.FixtureRequest
) -> None:
    (batch,) = whole(request.getfixturevalue(kind).connector(query=query, **setting))
    found: dict[int, ROW] = dict(zip(batch.positions, batch.records["v"], strict=True))
    for number, value in enumerate(expected, start=1):
        if isinstance(value, ValueError):
            (reason,) = [reject.reason for reject in batch.rejects if reject.position == number]
            assert str(value) in reason
        else:
            assert found.pop(number) == value
    assert found == {}


def test_money_is_the_text_of_the_servers_locale_without_the_setting(postgresql: Any) -> None:
    (batch,) = whole(postgresql.connector(query="SELECT 1234.5::money AS v, 1234.5::money::text AS t"))
    ((value, text),) = batch.records.rows()
    assert value == text


HARD = [
    "", "\\N", "\\", "\\\\N", "a\tb", "a\nb", "\r\n", "\r", '"', '""', "'", "\ufeffbom", " x ", "NULL", "\v\f\b", "é🚀", "\x1f",
    "\x00", "\\U", "\\u000b", ",",
]  # fmt: skip


def test_every_text_arrives_as_it_is(database: Any) -> None:
    texts = [text for text in HARD if text != "\x00" or database.kind != "postgresql"]  # which refuses it
    mark = "?" if database.kind == "sqlite" else "%s"
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT, w TEXT)")
    for number, text in enumerate([*texts, None]):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, {mark}, {mark})", (text, text))
    table = database.name("p")
    (batch,) = whole(database.connector(query=f"SELECT v, w FROM {table} ORDER BY id"))
    assert batch.records.rows() == [(text, text) for text in [*texts, None]]
    (batch,) = whole(
        database.connector(query=f"SELECT v FROM {table} ORDER BY id")
    )  # a single column may be a blank line
    assert batch.records["v"].to_list() == [*texts, None]
    for number in range(len(texts)):  # each text as the first of its block
        (batch,) = whole(database.connector(query=f"SELECT v FROM {table} WHERE id = {number}"))
        assert batch.records["v"].to_list() == [texts[number]]


def test_postgresql_times_beyond_the_calendar_stay_as_the_server_writes_them(postgresql: Any) -> None:
    query = """
        SELECT t, t::timestamptz AS z, t::date AS d FROM (VALUES (timestamp 'infinity'), ('-infinity'),
        ('0044-03-15 12:00:00 BC'), ('0001-01-01'), ('294276-12-31 23:59:59'), ('2026-01-02 00:00:00.5'), (NULL)) AS v (t)
    """
    (batch,) = whole(postgresql.connector(query=query))
    assert batch.records.rows() == [
        ("infinity", "infinity", "infinity"),
        ("-infinity", "-infinity", "-infinity"),
        ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00+00 BC", "0044-03-15 BC"),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00+00:00", "0001-01-01"),
        ("294276-12-31T23:59:59", "294276-12-31T23:59:59+00:00", "294276-12-31"),
        ("2026-01-02T00:00:00.5", "2026-01-02T00:00:00.5+00:00", "2026-01-02"),
        (None, None, None),
    ]


def test_mariadb_prints_exact_values(mariadb: Any) -> None:
    mariadb.do("SET SESSION time_zone = '+03:00', sql_mode = ''")
    mariadb.do(
        f"CREATE TABLE {mariadb.name('p')} (f FLOAT, d DOUBLE, n DECIMAL(20,6), dt DATETIME(3), ts TIMESTAMP, da DATE,"
        " ti TIME(2), bi BIT(4), j JSON, e ENUM('a','b'), y YEAR, lat VARCHAR(10) CHARACTER SET latin1, bo BOOLEAN, g POINT)"
    )
    mariadb.do(
        f"INSERT INTO {mariadb.name('p')} VALUES (0.1, 1e-7, 1.10, '2026-01-02 03:04:05.123', '2026-01-02 03:04:05',"
        " '2026-01-02', '-12:30:00.5', 5, '{\"a\": 1.0}', 'b', 2026, 'é', TRUE, POINT(1, 2))"
    )
    (batch,) = whole(mariadb.connector(table=mariadb.name("p")))
    assert batch.records.row(0, named=True) == {
        "f": "0.10000000149011612",
        "d": "0.0000001",
        "n": "1.100000",
        "dt": "2026-01-02T03:04:05.123",
        "ts": "2026-01-02T00:04:05+00:00",
        "da": "2026-01-02",
        "ti": "-12:30:00.50",
        "bi": "5",
        "j": '{"a": 1.0}',
        "e": "b",
        "y": "2026",
        "lat": "é",
        "bo": "1",
        "g": "POINT(1 2)",
    }


def test_a_long_text_of_many_lines_is_not_rewritten_once_for_each_line_by_mariadb(mariadb: Any) -> None:
    mariadb.do(f"CREATE TABLE {mariadb.name('p')} (t LONGTEXT, b LONGBLOB)")
    mariadb.do(f"INSERT INTO {mariadb.name('p')} SELECT REPEAT('\\n', 1000000), REPEAT('x', 5000000)")
    (batch,) = whole(mariadb.connector(table=mariadb.name("p"), binary="base64", statement_timeout_seconds=10))
    assert batch.records["t"].to_list() == ["\n" * 1_000_000]
    assert batch.records["b"].to_list() == [b64encode(b"x" * 5_000_000).decode()]


@pytest.mark.parametrize("binary", ["hex", "base64"])
def test_bytes_that_are_too_long_as_text_are_rejected_and_not_taken_for_null(mariadb: Any, binary: str) -> None:
    mariadb.do(f"CREATE TABLE {mariadb.name('p')} (k INTEGER, b LONGBLOB)")
    mariadb.do(f"INSERT INTO {mariadb.name('p')} SELECT 1, REPEAT('x', 14000000) UNION ALL SELECT 2, NULL")
    (batch,) = whole(mariadb.connector(table=mariadb.name("p"), key="k", binary=binary))
    assert batch.records.rows() == [("2", None)]
    assert [(r.position, r.field) for r in batch.rejects] == [("k=1", "b")]
    assert "max_allowed_packet" in batch.rejects[0].reason


def test_a_batch_ends_with_the_row_that_exceeds_its_bytes(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT)")
    for number in range(40):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number}, '{'x' * 20_000}')")
    batches = whole(database.connector(table=database.name("p"), batch_bytes=100_000))
    assert sum(batch.records.height for batch in batches) == 40
    assert max(batch.records.estimated_size() for batch in batches) < 130_000
    assert len(batches) <= 8


def test_a_database_without_an_encoding_is_read_and_only_its_undecodable_rows_are_rejected(postgresql: Any) -> None:
    name = f"ascii_{postgresql.schema}"
    postgresql.do(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        parts = urlsplit(postgresql.url)
        query = "SELECT v, 1.0 AS w FROM (VALUES ('a'), ('é'), (convert_from('\\xff', 'SQL_ASCII')), (NULL)) AS t (v)"
        (batch,) = whole(postgresql.connector(url=urlunsplit(parts._replace(path=f"/{name}")), query=query))
    finally:
        postgresql.do(f"DROP DATABASE {name}")
    assert batch.records.rows() == [("a", "1.0"), ("é", "1.0"), (None, "1.0")]
    (reject,) = batch.rejects
    assert (reject.position, reject.field, reject.record["w"]) == (3, "v", "1.0")
    assert "not UTF-8" in reject.reason


def test_a_table_is_named_as_sql_writes_it(database: Any) -> None:
    database.do(f"""CREATE TABLE {database.name('"Part.List"')} (v TEXT)""")
    database.do(f"""INSERT INTO {database.name('"Part.List"')} VALUES ('x')""")
    for table in (
        database.name('"Part.List"'),
        f'"{database.schema}"."Part.List"' if database.schema else '"Part.List"',
    ):
        (batch,) = whole(database.connector(table=table))
        assert batch.records.rows() == [("x",)]


def test_columns_a_and_a_1_differ_and_equal_names_do_not(sqlite: Any) -> None:
    sqlite.do('CREATE TABLE p (a TEXT, "a:1" TEXT)')
    sqlite.do("INSERT INTO p VALUES ('x', 'y')")
    for source in ({"table": "p"}, {"query": "SELECT * FROM p"}):
        (batch,) = whole(sqlite.connector(**source))
        assert batch.records.rows(named=True) == [{"a": "x", "a:1": "y"}]
