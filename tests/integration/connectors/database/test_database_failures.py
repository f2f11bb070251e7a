"""Messages for an unreadable database, and the exception class that decides what the daemon does."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from pydantic import ValidationError

from connectors.database import DatabaseConnector, DatabaseOptions
from connectors.database.mariadb import MariadbSession
from connectors.database.postgresql_failure import statement_error
from ingestd.sdk import Partition, SourceBroken, SourceContext, SourceUnavailable
from tests.support.refusing_postgres import counting_postgres

SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS i FROM n",
    "postgresql": "SELECT pg_sleep(60)",
    "mariadb": "SELECT sleep(60) AS slept",
}


def read(connector: Any) -> None:
    (partition,) = connector.partitions()
    list(connector.read(partition, None))


def connector_of(url: str, **options: Any) -> DatabaseConnector:
    settings = DatabaseOptions.model_validate({"url": url, "table": "p"} | options)
    return DatabaseConnector(settings, SourceContext(pipeline="t", base=Path(), now=lambda: 0.0))


@contextmanager
def reader_of(postgresql: Any, *grants: str) -> Iterator[str]:
    """Create a role with the right to use the schema and with ``grants``; the context has the URL of its login."""
    role = f"r{postgresql.schema}"
    address = urlsplit(postgresql.url)
    postgresql.do(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    try:
        for grant in (f"USAGE ON SCHEMA {postgresql.schema}", *grants):
            postgresql.do(f"GRANT {grant} TO {role}")
        yield urlunsplit(address._replace(netloc=f"{role}:x@{address.hostname}:{address.port or 5432}"))
    finally:
        postgresql.do(f"DROP OWNED BY {role}")
        postgresql.do(f"DROP ROLE {role}")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("mode", ["snapshot", "changes"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, sqlite: Any, make: Any, mode: str) -> None:
    make(tmp_path / "other.db")
    with pytest.raises(SourceBroken, match=r"other\.db is not a regular file"):
        read(sqlite.connector(url="sqlite:///other.db", table="p", mode=mode, key="id"))


def test_a_missing_database_file_is_unavailable_and_is_not_created(tmp_path: Any, sqlite: Any) -> None:
    connector = sqlite.connector(url="sqlite:///elsewhere.db", table="p")
    with pytest.raises(SourceUnavailable, match="No such file"):
        read(connector)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_file_that_is_no_database_is_broken(tmp_path: Any, sqlite: Any) -> None:
    (tmp_path / "x.db").write_text("part,mass\n" * 500)
    with pytest.raises(SourceBroken, match="file is not a database"):
        read(sqlite.connector(url="sqlite:///x.db", table="p"))


def test_a_missing_table_is_broken_and_the_existing_tables_are_named(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('parts')} (id INTEGER)")
    with pytest.raises(SourceBroken) as error:
        read(database.connector(table=database.name("prats")))
    assert "prats" in str(error.value)
    if database.kind == "sqlite":
        assert "There are the tables parts." in str(error.value)


def test_an_invalid_query_is_broken_with_the_message_of_the_server(database: Any) -> None:
    with pytest.raises(SourceBroken, match=r"(?i)syntax error|error in your SQL syntax"):
        read(database.connector(query="SELEKT 1"))


def test_a_missing_column_is_broken_and_the_existing_columns_are_named(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, v TEXT)")
    with pytest.raises(SourceBroken, match=r"has no column part; it has id, v\."):
        read(database.connector(table=database.name("p"), key="part"))
    steps = {step.name: step for step in database.connector(table=database.name("p"), key="part").verify()}
    assert steps["columns"].outcome == "failed"
    changes = database.connector(table=database.name("p"), key="id", mode="changes", cursor="at")
    with pytest.raises(SourceBroken, match="at"):
        read(changes)


def test_columns_of_the_same_name_are_broken(database: Any) -> None:
    with pytest.raises(SourceBroken, match="more than one column a"):
        read(database.connector(query="SELECT 1 AS a, 2 AS a"))
    with pytest.raises(SourceBroken, match=r"more than one column a|ambiguous"):
        read(database.connector(query="SELECT 1 AS a, 2 AS a", mode="changes", cursor="a", key="a"))


def test_a_statement_that_takes_too_long_is_cancelled(database: Any) -> None:
    connector = database.connector(query=SLOW[database.kind], statement_timeout_seconds=0.2)
    with pytest.raises(SourceUnavailable, match=r"longer than 0\.2 seconds"):
        read(connector)


def test_verify_accepts_a_valid_source_and_closing_twice_is_harmless(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER, at TIMESTAMP)")
    connector = database.connector(table=database.name("p"), key="id", mode="changes", cursor="at")
    assert [(step.name, step.outcome) for step in connector.verify()] == [
        ("connection", "passed"),
        ("columns", "passed"),
        ("changes", "passed"),
    ]
    connector.close()
    connector.close()
    assert "Changes are found by the method" in (connector.explain(database.name("p")) or "")
    assert connector.explain("other") is None
    assert isinstance(next(iter(connector.partitions())), Partition)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "db2://u:s3cret@h/d", "table": "p"}, "not known; known are sqlite, postgresql, mariadb, mysql, mssql"),
        ({"url": "no url s3cret", "table": "p"}, "no database URL"),
        ({"url": "sqlite://", "table": "p"}, "name the database file"),
        ({"url": "sqlite:///x.db"}, "either table or query"),
        ({"url": "sqlite:///x.db", "table": "p", "query": "SELECT 1"}, "either table or query"),
        ({"url": "sqlite:///x.db", "table": "p", "mode": "changes", "cursor": "at"}, "needs key"),
        ({"url": "sqlite:///x.db", "table": "p", "cursor": "at"}, "cursor is for mode: changes"),
    ],
)
def test_an_invalid_configuration_is_reported_without_the_secret(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as error:
        DatabaseOptions.model_validate(options)
    assert "s3cret" not in "".join(str(mistake["msg"]) for mistake in error.value.errors())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@127.0.0.1:1/pdm?password=s3cret",
        "postgresql://127.0.0.1:1/pdm?user=me&password=s3cret&connect_timeout=2",
        "postgresql://me:s3cret@127.0.0.1:1/pdm",
        "postgresql://me:pa/s3cret@127.0.0.1:1/pdm",
        "postgresql+psycopg://me:p%40s3cret@127.0.0.1:1/pdm",
        "mariadb://me:s3cret@127.0.0.1:1/pdm",
        "mysql+pymysql://me:s3cret@127.0.0.1:1/pdm?program_name=x",
    ],
)
def test_a_password_in_any_part_of_the_url_is_shown_nowhere(url: str) -> None:
    connector = connector_of(url)
    with pytest.raises(SourceUnavailable, match="can't be reached") as error:
        read(connector)
    (step,) = connector.verify()
    assert step.outcome == "failed"
    assert error.value.__cause__ is None
    shown = f"{error.value} {error.value!r} {connector.options!r} {connector.explain('p')} {step}"
    assert "s3cret" not in shown
    assert "127.0.0.1:1/pdm" in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host:pa/pdm",
        "postgresql://me@host/pdm?s3cret",
        "postgresql://me@host/pdm?s3cret@x=1",
        "postgresql://me@s3cret@host@more/pdm",
        "mysql:/me:s3cret@host/pdm",
    ],
)
def test_a_url_that_is_none_is_not_repeated(url: str) -> None:
    with pytest.raises(ValidationError) as error:
        DatabaseOptions.model_validate({"url": url, "table": "p"})
    (mistake,) = error.value.errors()
    assert "this is no database URL" in mistake["msg"]
    assert "s3cret" not in mistake["msg"]


@pytest.mark.parametrize("password", ["c", "e", "n", "postgresql", "p"])
def test_a_short_password_does_not_damage_the_sentence(password: str) -> None:
    with pytest.raises(SourceUnavailable, match=r"connection.*refused") as error:
        read(connector_of(f"postgresql://me:{password}@127.0.0.1:1/pdm"))
    assert str(error.value).count("***") == 1


def test_rows_that_a_policy_hides_are_an_error_and_no_removed_rows(postgresql: Any) -> None:
    table = postgresql.name("p")
    postgresql.do(f"CREATE TABLE {table} (id INTEGER)")
    postgresql.do(f"INSERT INTO {table} VALUES (1), (2)")
    with reader_of(postgresql, f"SELECT ON {table}") as url:
        postgresql.do(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        with pytest.raises(SourceBroken, match=r"row-level security.*hidden rows would count as removed.*BYPASSRLS"):
            read(postgresql.connector(url=url, table=table, deletes="remove", key="id"))
        postgresql.do(f"ALTER ROLE r{postgresql.schema} BYPASSRLS")
        read(postgresql.connector(url=url, table=table, deletes="remove", key="id"))


def test_only_the_program_for_which_the_reading_waits_is_named(postgresql: Any) -> None:
    table, other = postgresql.name("p"), postgresql.name("q")
    postgresql.do(f"CREATE TABLE {table} (id INTEGER)")
    postgresql.do(f"CREATE TABLE {other} (id INTEGER)")
    with (
        psycopg.connect(postgresql.url, application_name="migration") as owner,
        psycopg.connect(postgresql.url, application_name="elsewhere") as other_owner,
        reader_of(postgresql, f"SELECT ON {table}") as url,
    ):
        owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        other_owner.execute(f"LOCK TABLE {other} IN ACCESS EXCLUSIVE MODE")
        holder = rf"held by process {owner.info.backend_pid} of user \S+"
        with pytest.raises(SourceUnavailable) as error:
            read(postgresql.connector(table=table, lock_timeout_seconds=2))
        assert "holds a lock for longer than 2 seconds (lock_timeout_seconds)" in str(error.value)
        assert re.search(rf"{holder} \(migration\) on {table} since [\d:]{{8}} UTC\.$", str(error.value))
        with pytest.raises(SourceUnavailable, match=holder):  # a user without rights gets what it may see
            read(postgresql.connector(url=url, table=table, lock_timeout_seconds=2))
        owner.rollback()


def test_a_lock_of_mariadb_is_waited_for_a_limited_time(mariadb: Any) -> None:
    mariadb.do(f"CREATE TABLE {mariadb.name('p')} (id INTEGER)")
    mariadb.do(f"LOCK TABLES {mariadb.name('p')} WRITE")
    with pytest.raises(SourceUnavailable, match=r"longer than 1 seconds \(lock_timeout_seconds\)"):
        read(mariadb.connector(table=mariadb.name("p"), lock_timeout_seconds=1))
    mariadb.do("UNLOCK TABLES")


ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "postgresql": "SELECT i FROM generate_series(1, 10000000000) i",
    "mariadb": "SELECT seq FROM seq_1_to_1000000000",
}


def test_a_reading_as_a_whole_has_a_limit(database: Any) -> None:
    connector = database.connector(query=ENDLESS[database.kind], read_timeout_seconds=0.3, batch_rows=1000)
    with pytest.raises(SourceUnavailable, match=r"took longer than 0\.3 seconds \(read_timeout_seconds\)"):
        read(connector)


def test_a_slow_mapping_is_not_the_silence_of_the_database(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('p')} (id INTEGER)")
    for number in range(4):
        database.do(f"INSERT INTO {database.name('p')} VALUES ({number})")
    connector = database.connector(table=database.name("p"), statement_timeout_seconds=0.5, batch_rows=2)
    (partition,) = connector.partitions()
    count = 0
    for batch in connector.read(partition, None):
        Event().wait(0.6)  # the time that a mapping takes
        count += batch.records.height
    assert count == 4


def test_a_login_that_mariadb_refuses_is_tried_once(mariadb: Any) -> None:
    def refused() -> int:
        mariadb.do("SHOW GLOBAL STATUS LIKE 'Access_denied_errors'")
        return int(mariadb.do.__self__.fetchone()[1])

    before = refused()
    connector = mariadb.connector(url=mariadb.url.replace("root", "unknown:s3cret"), table="p")
    for _ in range(3):
        with pytest.raises(SourceBroken, match=r"refuses the login.*does not try again") as error:
            read(connector)
        assert "s3cret" not in str(error.value)
    assert refused() == before + 1


@pytest.mark.parametrize(
    ("code", "words", "sentence", "attempts"),
    [
        ("28P01", "Passwort-Authentifizierung fehlgeschlagen", "refuses the login", 2),
        ("28000", "la connexion est refusée", "refuses the login", 2),
        ("28P01", 'password authentication failed for user "me"', "refuses the login", 1),
        ("53300", "tut mir leid, schon zu viele Verbindungen", "can't be reached", 6),
        ("3D000", "Datenbank »pdm« existiert nicht", "refuses the connection", 6),
    ],
)
def test_a_server_in_another_language_is_understood_by_its_code(
    code: str, words: str, sentence: str, attempts: int
) -> None:
    with counting_postgres(code, words) as server:
        connector = connector_of(f"postgresql://me:s3cret@127.0.0.1:{server.server_address[1]}/pdm")
        for _ in range(3):
            with pytest.raises((SourceBroken, SourceUnavailable), match=sentence) as error:
                read(connector)
            assert "s3cret" not in str(error.value)
        assert server.attempts == attempts
        connector.resume()  # as `ingestd reload` does
        with pytest.raises((SourceBroken, SourceUnavailable), match=sentence):
            read(connector)
        assert server.attempts > attempts


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("25P03", SourceUnavailable),  # idle_in_transaction_session_timeout
        ("08P01", SourceBroken),  # protocol violation
        ("08006", SourceUnavailable),
        ("40001", SourceUnavailable),
        ("57P01", SourceUnavailable),
        ("53300", SourceUnavailable),
        ("42601", SourceBroken),
        ("22012", SourceBroken),
    ],
)
def test_the_code_of_an_error_decides_whether_it_is_tried_again(state: str, kind: type[Exception]) -> None:
    options = DatabaseOptions.model_validate({"url": "postgresql://h/d", "table": "p"})
    error = psycopg.errors.lookup(state)("words")
    assert type(statement_error(options, error, None)) is kind


def test_a_server_that_accepts_and_is_silent_is_unavailable_after_the_wait_for_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"mariadb://me:s3cret@127.0.0.1:{silent.getsockname()[1]}/pdm"
        with pytest.raises(SourceUnavailable, match=r"sent nothing for 1 seconds \(connect_timeout_seconds\)"):
            read(connector_of(url, connect_timeout_seconds=1, statement_timeout_seconds=3))


def test_a_certificate_that_can_not_be_read_is_broken_with_its_setting(mariadb: Any) -> None:
    with pytest.raises(SourceBroken, match=r"ssl_ca, ssl_cert or ssl_key .* No such file"):
        read(mariadb.connector(url=f"{mariadb.url}?ssl_ca=/nowhere.pem", table="p"))


def test_a_limit_of_idle_transactions_does_not_end_a_reading(postgresql: Any) -> None:
    postgresql.do(f"CREATE TABLE {postgresql.name('p')} (id integer, v text)")
    url = postgresql.url + ("&" if "?" in postgresql.url else "?")
    connector = postgresql.connector(
        url=f"{url}options=-cidle_in_transaction_session_timeout%3D20ms", table=postgresql.name("p")
    )
    with connector._session() as session:
        assert session.scalar("SHOW idle_in_transaction_session_timeout") == "6h"
    read(connector)


def test_a_server_that_ends_the_connection_is_unavailable(postgresql: Any) -> None:
    connector = postgresql.connector(query="SELECT i FROM generate_series(1, 5000000) i", batch_rows=1000)
    (partition,) = connector.partitions()
    reading = connector.read(partition, None)
    next(reading)
    postgresql.do(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ingestd' AND query LIKE '%5000000%'"
    )
    # A request that crosses the end of the connection costs the client the server's last words.
    words = (
        r"can't be reached: (terminating connection|consuming input failed: server closed the connection unexpectedly)"
    )
    with pytest.raises(SourceUnavailable, match=words):
        list(reading)


def test_a_server_process_that_freezes_is_unavailable_after_the_limit_of_silence(postgresql: Any) -> None:
    connector = postgresql.connector(
        query="SELECT i, repeat('x', 1000) AS v FROM generate_series(1, 500001) i",
        batch_rows=1000,
        statement_timeout_seconds=2,
    )
    (partition,) = connector.partitions()
    reading = connector.read(partition, None)
    next(reading)
    found = postgresql.do(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'ingestd' AND query LIKE '%500001%'"
    )
    (pid,) = found.fetchone()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(
            SourceUnavailable, match=r"sent nothing for longer than 2 seconds \(statement_timeout_seconds\)"
        ):
            list(reading)
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_statement_that_is_given_up_does_not_run_on(kind: str, request: pytest.FixtureRequest) -> None:
    database = request.getfixturevalue(kind)
    with pytest.raises(SourceUnavailable):
        read(database.connector(query=SLOW[database.kind], statement_timeout_seconds=0.3))
    running = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ingestd' AND state = 'active'"
        " AND query LIKE '%pg_sleep(60)%'",
        "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%sleep(60)%' AND id <> CONNECTION_ID()",
    }
    count = 1
    for _ in range(100):  # the server ends it at once, and reports that a moment later
        done = database.do(running[database.kind])
        count = done.fetchone()[0] if database.kind == "postgresql" else database.do.__self__.fetchone()[0]
        if not count:
            return
        Event().wait(0.05)
    raise AssertionError(f"{count} statements still run")


def test_verify_fails_for_a_user_who_may_not_read_the_table(postgresql: Any) -> None:
    table = postgresql.name("p")
    postgresql.do(f"CREATE TABLE {table} (id INTEGER, mass TEXT)")
    with reader_of(postgresql) as url:
        connector = postgresql.connector(url=url, table=table, key="id")
        *_, step = connector.verify()
        assert (step.name, step.outcome) == ("columns", "failed")
        assert "permission denied for table p" in step.sentence
        postgresql.do(f"GRANT SELECT (id) ON {table} TO r{postgresql.schema}")
        assert [one.outcome for one in connector.verify()] == ["passed", "failed"], "a column is missing"
        postgresql.do(f"GRANT SELECT ON {table} TO r{postgresql.schema}")
        assert [one.outcome for one in connector.verify()] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("version", "words"),
    [("5.6.51-log", "is MySQL 5.6.51; the oldest supported version is 5.7.8"), ("10.1.48-MariaDB", "MariaDB 10.1.48")],
)
def test_a_server_that_is_too_old_is_named_with_the_oldest_version(
    mariadb: Any, monkeypatch: pytest.MonkeyPatch, version: str, words: str
) -> None:
    scalar = MariadbSession.scalar

    def of_version(session: MariadbSession, sql: str, parameters: Any = ()) -> str | None:
        return version if "VERSION()" in sql else scalar(session, sql, parameters)

    monkeypatch.setattr(MariadbSession, "scalar", of_version)
    *_, step = mariadb.connector(query="SELECT 1 AS id").verify()
    assert step.outcome == "failed"
    assert words in step.sentence
