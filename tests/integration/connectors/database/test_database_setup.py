"""The SQL of `ingestd database sql` is executed by the databases' own programs, for names with any character."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.cli import main
from ingestd.sdk import SourceBroken, SourceContext
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import mariadb_connection

NUMBERS = itertools.count(1)
ODD = ['a"b', "a'b", "a`b", "--", "/*", ";", "$ingestd$", "$ingestd_$", "\\", "a.b", "%", "{", ":x", "é", "@", "#"]


def names(most_bytes: int = 40, *, last: int = 0x10FFFF) -> st.SearchStrategy[str]:
    """Return names without the characters that are refused."""
    characters = st.characters(max_codepoint=last, exclude_categories=["Cc", "Cs", "Zl", "Zp"])
    one = st.lists(st.one_of(st.sampled_from(ODD), characters), min_size=1, max_size=8).map("".join)
    return one.filter(lambda name: len(name.encode()) <= most_bytes and name == name.strip())


def printed(**options: Any) -> str:
    connector = DatabaseConnector(
        DatabaseOptions.model_validate(options), SourceContext(pipeline="p", base=Path(), now=lambda: 0.0)
    )
    return connector.setup_sql()


def removal(text: str) -> str:
    """Return the statements of the removals, last section first, as an administrator would without the comment marks."""
    sections = [section.partition("-- To remove it:\n")[2] for section in text.split("\n\n")]
    return "\n".join(line.removeprefix("-- ") for section in reversed(sections) for line in section.splitlines())


def run(command: list[str], text: str) -> None:
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env=os.environ | {"PGCLIENTENCODING": "UTF8"}
    )
    assert done.returncode == 0, f"{done.stderr.decode()}\n{text}"


def dotted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgresql_server("-c wal_level=logical") as started:
        yield started


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schema=names(), table=names(), column=names(), channel=names(63), user=names())
@example(schema='a"; DROP', table="$ingestd$", column="--", channel="$ingestd$ $ingestd_$", user="' OR \"")
@example(schema="s", table="t", column="c", channel="x" * 63, user="u")
def test_postgresql_executes_the_setup_and_its_removal_for_any_names(
    server: PostgresServer, *, schema: str, table: str, column: str, channel: str, user: str
) -> None:
    schema, user = f"s{next(NUMBERS)} {schema}", f"u{next(NUMBERS)} {user}"
    where = sql.SQL(".").join([sql.Identifier(schema), sql.Identifier(table)])
    url = f"postgresql://{quote(user, safe='')}:s3cret@127.0.0.1:{server.port}/postgres"
    options = {
        "url": url, "table": dotted(schema, table), "mode": "changes", "key": column, "cursor": column, "notify": channel,
        "slot": "ingestd_parts", "publication": channel,
    }  # fmt: skip
    with server.connect() as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("CREATE TABLE {} ({} int)").format(where, sql.Identifier(column)))
        text = printed(**options)
        assert "s3cret" not in text
        psql = ["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", server.url]
        run(psql, text)
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        insert = sql.SQL("INSERT INTO {} VALUES (1)").format(where)
        with connection.transaction():
            connection.execute(insert)
            connection.execute(insert)
        connection.execute(sql.SQL("UNLISTEN *"))
        notified = list(connection.notifies(timeout=0))
        assert [one.channel for one in notified] == [channel]
        with psycopg.connect(url) as reader:
            assert reader.execute(sql.SQL("SELECT count(*) FROM {}").format(where)).fetchone() == (2,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(insert)
        slots = "SELECT plugin FROM pg_replication_slots"
        assert connection.execute(slots).fetchall() == [("pgoutput",)]
        run(psql, removal(text))
        assert connection.execute(slots).fetchall() == []
        functions = "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = %s"
        assert connection.execute(functions, (schema,)).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_roles WHERE rolname = %s", (user,)).fetchone() == (0,)
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    schema=names(30, last=0xFFFF),
    table=names(30, last=0xFFFF),
    column=names(30, last=0xFFFF),
    user=names(30, last=0xFFFF),
)
@example(schema="a`; DROP", table="--", column="\\", user="' OR \"")
def test_mariadb_executes_the_setup_and_its_removal_for_any_names(
    mariadb_url: str, *, schema: str, table: str, column: str, user: str
) -> None:
    schema, user = f"s{next(NUMBERS)} {schema}", f"u{next(NUMBERS)} {user}"
    parts = urlsplit(mariadb_url)
    url = f"mariadb://{quote(user, safe='')}:s3cret@127.0.0.1:{parts.port}/test"
    options = {"url": url, "table": dotted(schema, table), "mode": "changes", "key": column, "cursor": column}
    ticked = ["`" + name.replace("`", "``") + "`" for name in (schema, table, column)]
    with mariadb_connection(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {ticked[0]}")
        cursor.execute(f"CREATE TABLE {ticked[0]}.{ticked[1]} ({ticked[2]} datetime)")
        text = printed(**options)
        assert "s3cret" not in text
        client = ["mariadb", "-h127.0.0.1", f"-P{parts.port}", "-uroot", "--default-character-set=utf8mb4"]
        run(client, text)
        cursor.execute("SELECT JSON_VALUE(priv, '$.account_locked') FROM mysql.global_priv WHERE user = %s", (user,))
        assert [str(value).lower() in {"1", "true"} for (value,) in cursor.fetchall()] == [True]
        cursor.execute(
            "SELECT table_name, table_priv FROM mysql.tables_priv WHERE user = %s AND db = %s", (user, schema)
        )
        assert cursor.fetchall() == ((table, "Select"),)
        run(client, removal(text))
        cursor.execute("SELECT count(*) FROM mysql.global_priv WHERE user = %s", (user,))
        assert cursor.fetchone() == (0,)
        cursor.execute(f"SHOW INDEX FROM {ticked[0]}.{ticked[1]}")
        assert cursor.fetchall() == ()
        cursor.execute(f"DROP DATABASE {ticked[0]}")


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\u2028"])
def test_a_name_that_would_end_a_comment_is_refused(character: str) -> None:
    with pytest.raises(SourceBroken, match="holds a control character"):
        printed(url="postgresql://h/d", table=dotted(f"a{character}DROP"), notify="c")


def test_a_query_has_no_trigger_and_says_so() -> None:
    text = printed(url="postgresql://u@h/d", query="SELECT 1", notify="c")
    assert "The source reads a query" in text
    assert "TRIGGER" not in text


def test_a_file_of_sqlite_needs_no_setup() -> None:
    assert printed(url="sqlite:///p.db", table="p").startswith("-- SQLite needs no setup")


def test_the_command_prints_sql_of_databases_only(tmp_path: Path) -> None:
    source = {"connector": "database", "url": "postgresql://u:s3cret@h/d", "table": "t", "notify": "c"}
    entries, sink = {"key": "{a}", "value": "{a}"}, {"workspace": "w", "label": "s"}
    pipelines = [
        {"name": "p", "source": source, "entries": entries, "sink": sink, "schedule": {"every": "1m"}},
        {
            "name": "f",
            "source": {"connector": "file", "path": "a.csv"},
            "entries": entries,
            "sink": sink | {"label": "f"},
        },
    ]
    service = {"url": "http://127.0.0.1:1", "api_key": "k"}
    configuration = tmp_path / "ingestd.yaml"
    configuration.write_text(json.dumps({"service": service, "state": "s.db", "pipelines": pipelines}))

    def ingestd(name: str) -> Result:
        return CliRunner().invoke(main, ["database", "sql", "-c", str(configuration), name])

    done = ingestd("p")
    assert done.exit_code == 0, done.output
    assert 'CREATE ROLE "u" LOGIN;' in done.stdout
    assert "s3cret" not in done.output
    other = ingestd("f")
    assert other.exit_code == 2
    assert "is no database (connector: file)" in other.output
    assert ingestd("q").exit_code == 2
