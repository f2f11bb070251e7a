"""The SQL for SQL Server and Oracle: each statement is compared with a golden text and compiled by a parser of the dialect.

No test runs these statements on a server.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from pydantic import SecretStr

from connectors.database import DatabaseConnector
from connectors.database.changes import server_version
from connectors.database.changes.cursor import rewind_cursor
from connectors.database.changes.method import ReadPlan
from connectors.database.changes.selection import choose_method
from connectors.database.driver import DriverDialect, text_frames
from connectors.database.families import create_database
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.oracle import SESSION, OracleDialect
from connectors.database.oracle import column_of as oracle_column
from connectors.database.port import Frame, ReadSession, ResultColumn, bind
from connectors.database.sqlserver import ONE_STATE, SqlServerDialect
from connectors.database.sqlserver import column_of as sqlserver_column
from ingestd.sdk import SourceBroken, SourceContext
from tests.support.golden_texts import check_statements

SQLSERVER_TYPES = (
    "int", "bigint", "decimal(10,2)", "float", "real", "money", "bit", "date", "time(7)", "datetime", "datetime2(3)",
    "smalldatetime", "datetimeoffset(7)", "char(10)", "nvarchar(50)", "text", "uniqueidentifier", "xml", "varbinary(max)",
    "image", "timestamp", "geography", "hierarchyid", "sql_variant",
)  # fmt: skip
ORACLE_TYPES = (
    "NUMBER", "BINARY_FLOAT", "BINARY_DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_TZ", "TIMESTAMP_LTZ", "INTERVAL_DS", "INTERVAL_YM",
    "CHAR", "VARCHAR", "NVARCHAR", "CLOB", "LONG", "BOOLEAN", "ROWID", "JSON", "XMLTYPE", "RAW", "BLOB",
)  # fmt: skip
BEYOND_PARSER = (ONE_STATE, "SELECT JSON_SERIALIZE(")
"""Beginnings of statements that the parser does not know; the manuals of the databases have them."""

SETTINGS: tuple[dict[str, Any], ...] = ({}, {"binary": "hex", "char_padding": "trim"}, {"binary": "base64"})


def sqlserver(**settings: Any) -> SqlServerDialect:
    return SqlServerDialect(options("mssql://u@h/d", **settings))


def oracle(**settings: Any) -> OracleDialect:
    return OracleDialect(options("oracle://u@h/d", **settings))


def options(url: str, **settings: Any) -> DatabaseOptions:
    named = {} if "query" in settings else {"table": "pdm.Part"}
    return DatabaseOptions(url=SecretStr(url), **named | settings)


class Recorder(ReadSession):
    """Records the statements of a change method. Every scalar is the number 12, every table has the columns ``kinds``."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def columns(self, source: str) -> list[ResultColumn]:
        raise NotImplementedError

    def frames(self, *arguments: Any, **named: Any) -> Iterator[Frame]:
        raise NotImplementedError

    def scalar(self, sql: str, parameters: Any = ()) -> str | None:
        assert not parameters
        self.statements.append(sql)
        return "12"


def sqlserver_statements() -> list[str]:
    columns = [sqlserver_column(f"c]{type_}", type_) for type_ in SQLSERVER_TYPES]
    query = sqlserver(query="SELECT 1 AS a -- comment;", cursor="rv", mode="changes", key="id")
    condition = changes(query, "timestamp", {"active": 7})
    made = [
        ONE_STATE, "SET LOCK_TIMEOUT 30000", server_version.MIN_ACTIVE, server_version.SQLSERVER_IDENTITY,
        *of_types(sqlserver, columns), query.describe(query.source), query.select(columns[:2], query.source, condition),
    ]  # fmt: skip
    return [bind(one, (), query.literal) for one in made]


def oracle_statements() -> list[str]:
    columns = [oracle_column(f'C"{type_}'.replace('"', ""), f"DB_TYPE_{type_}") for type_ in ORACLE_TYPES]
    dialect = oracle()
    condition = changes(dialect, "NUMBER", {"bound": 7, "candidate": {"scn": 9, "at": 3}})
    made = [
        SESSION, "SET TRANSACTION READ ONLY", server_version.NOW_SCN, server_version.NOW_SECONDS,
        server_version.ORACLE_IDENTITY, *of_types(oracle, columns), f"SELECT * FROM {dialect.source} WHERE 1 = 0",
        dialect.select(columns[:2], dialect.source, condition),
    ]  # fmt: skip
    return [bind(one, (), dialect.literal) for one in made]


def of_types(dialect: Callable[..., DriverDialect], columns: list[ResultColumn]) -> Iterator[str]:
    """Yield a statement for each column, and with other settings one for each column that they concern."""
    for settings in SETTINGS:
        chosen = dialect(**settings)
        for column in columns:
            if not settings or column.kind != "text":
                yield chosen.select([column], chosen.source)


def changes(dialect: DriverDialect, kind: str, state: dict[str, Any]) -> str:
    """Return the condition of a second reading."""
    method = choose_method(Recorder(), dialect, [ResultColumn(name="rv", type=kind)])
    session = Recorder()
    plan = method.follow(session, state, method.observe(session))
    assert plan.restriction is not None
    return f"WHERE {plan.restriction.condition}"


@pytest.mark.parametrize(
    ("name", "dialect", "statements"),
    [("sqlserver", "tsql", sqlserver_statements()), ("oracle", "oracle", oracle_statements())],
)
def test_the_statements_are_the_golden_ones_and_compile(name: str, dialect: str, statements: list[str]) -> None:
    check_statements(name, "".join(f"{one};\n" for one in statements))
    for statement in statements:
        if statement.startswith(BEYOND_PARSER):
            continue
        (parsed,) = sqlglot.parse(statement, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
        assert parsed is not None
        if statement.startswith("SELECT"):
            assert isinstance(parsed, sqlglot.exp.Select), statement


def test_a_literal_ends_no_text() -> None:
    assert sqlserver().literal("it's") == "N'it''s'"
    assert oracle().literal("it's") == "'it''s'"
    assert (sqlserver().literal(7), oracle().literal(1.5)) == ("7", "1.5")


def test_row_versions_are_read_from_the_lowest_open_one_and_wholly_after_a_restore() -> None:
    dialect = sqlserver(cursor="rv", mode="changes", key="id")
    method = choose_method(Recorder(), dialect, [ResultColumn(name="rv", type="timestamp")])
    session = Recorder()
    observed = method.observe(session)
    assert method.follow(session, None, observed) == ReadPlan(None, {"active": 12})
    assert method.follow(session, {"active": 13}, observed).restriction is None
    assert method.follow(session, {"active": 7}, observed).restriction == (
        "[rv] >= CONVERT(binary(8), CONVERT(bigint, 7))", (),
    )  # fmt: skip
    assert choose_method(Recorder(), dialect, [ResultColumn(name="rv", type="int")]).guarantee.method == "whole"


def test_a_change_number_becomes_the_bound_after_the_lag() -> None:
    method = choose_method(Recorder(), oracle(lag_seconds=5), [])
    first = method.follow(Recorder(), None, {})
    assert first == ReadPlan(None, {"bound": None, "candidate": {"scn": 12, "at": 12}})
    early = method.follow(Recorder(), {"bound": 3, "candidate": {"scn": 6, "at": 8}}, {})
    assert early.state == {"bound": 3, "candidate": {"scn": 6, "at": 8}}
    late = method.follow(Recorder(), {"bound": 3, "candidate": {"scn": 6, "at": 7}}, {})
    assert late.restriction == ("ORA_ROWSCN >= 3", ()), "the former bound still applies to this reading"
    assert late.state == {"bound": 6, "candidate": {"scn": 12, "at": 12}}
    assert method.follow(Recorder(), {"bound": 3, "candidate": {"scn": 99, "at": 7}}, {}).restriction is None


@pytest.mark.parametrize(("scheme", "package"), [("mssql", "mssql-python"), ("oracle", "oracledb")])
def test_a_missing_driver_names_the_extra(
    scheme: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(SourceBroken, match=rf"needs {package}: install ingestd\[{scheme}\]"):
        create_database(options(f"{scheme}://u:p@h/d"), tmp_path)


@pytest.mark.parametrize(
    ("url", "experimental"),
    [("mssql://u@h/d", ["database.kind sqlserver"]), ("oracle://u@h/d", ["database.kind oracle"]), ("sqlite:///d", [])],
)
def test_a_source_that_no_test_reads_is_reported_as_experimental(
    url: str, experimental: list[str], tmp_path: Path
) -> None:
    connector = DatabaseConnector(options(url), SourceContext(pipeline="p", base=tmp_path, now=lambda: 0.0))
    found = [step for step in connector.verify() if step.name == "kind"]
    assert [step.sentence.removesuffix(" is experimental: no test runs against such a server.") for step in found] == (
        experimental
    )
    assert {step.outcome for step in found} <= {"skipped"}


def test_rows_of_a_driver_become_frames_of_bounded_rows_and_bytes() -> None:
    chosen = options("mssql://u@h/d", batch_rows=3, batch_bytes=10_000)
    columns = [ResultColumn(name="a", type="text"), ResultColumn(name="b", type="text")]
    with closing(sqlite3.connect(":memory:")) as connection:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7)"
        rows = connection.execute(f"{numbers} SELECT CAST(i AS TEXT), CASE WHEN i % 2 THEN '' END FROM n")
        frames = list(text_frames(rows, columns, chosen, Deadline(chosen)))
    assert [frame.records.height for frame in frames] == [3, 3, 1]
    assert frames[0].records.rows() == [("1", ""), ("2", None), ("3", "")]


def test_a_change_number_is_no_time_to_which_a_cursor_could_return() -> None:
    cursor = {"changes": 1, "fingerprint": {"method": "RowChangeNumber"}, "state": {"bound": 8_000_000}}
    with pytest.raises(SourceBroken, match="change number of Oracle"):
        rewind_cursor(cursor, "1970-01-01T00:00:01Z")
