"""What a person reads when a database can't be read, and what the runtime does about it."""

import socket
from typing import Any

import pytest
from pydantic import ValidationError

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Partition, SourceBroken, SourceContext, SourceUnavailable

SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS i FROM n",
    "postgresql": "SELECT pg_sleep(60)",
    "mariadb": "SELECT sleep(60) AS slept",
}


def read(connector: Any) -> None:
    (partition,) = connector.partitions()
    list(connector.read(partition, None))


def test_a_server_that_is_away_is_unavailable_and_its_password_stays_secret(tmp_path: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: no process responds
        url = f"postgresql://me:s3cret@127.0.0.1:{taken.getsockname()[1]}/pdm"
        options = DatabaseOptions.model_validate({"url": url, "table": "p"})
        connector = DatabaseConnector(options, SourceContext(pipeline="t", base=tmp_path, now=lambda: 0.0))
        with pytest.raises(
            SourceUnavailable, match=r"postgresql://me:\*\*\*@127.0.0.1:\d+/pdm can't be reached"
        ) as error:
            read(connector)
        (step,) = connector.verify()
    assert "s3cret" not in str(error.value) + repr(error.value) + repr(options) + step.sentence
    assert error.value.__cause__ is None
    assert step.outcome == "failed"


def test_a_database_file_that_is_not_there_is_unavailable_and_is_not_made(tmp_path: Any, sqlite: Any) -> None:
    connector = sqlite.connector(url="sqlite:///elsewhere.db", table="p")
    with pytest.raises(SourceUnavailable, match="unable to open database file"):
        read(connector)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_file_that_is_no_database_is_broken(tmp_path: Any, sqlite: Any) -> None:
    (tmp_path / "x.db").write_text("part,mass\n" * 500)
    with pytest.raises(SourceBroken, match="file is not a database"):
        read(sqlite.connector(url="sqlite:///x.db", table="p"))


def test_a_missing_table_is_broken_and_the_tables_there_are_get_named(database: Any) -> None:
    database.do(f"CREATE TABLE {database.name('parts')} (id INTEGER)")
    with pytest.raises(SourceBroken) as error:
        read(database.connector(table=database.name("prats")))
    assert "prats" in str(error.value)
    if database.kind == "sqlite":
        assert "There are the tables parts." in str(error.value)


def test_a_wrong_query_is_broken_in_the_servers_words(database: Any) -> None:
    with pytest.raises(SourceBroken, match=r"(?i)syntax error|error in your SQL syntax"):
        read(database.connector(query="SELEKT 1"))


def test_a_missing_column_is_broken_and_the_columns_there_are_get_named(database: Any) -> None:
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


def test_a_statement_that_takes_too_long_is_given_up(database: Any) -> None:
    connector = database.connector(query=SLOW[database.kind], statement_timeout_seconds=0.2)
    with pytest.raises(SourceUnavailable, match=r"longer than 0\.2 seconds"):
        read(connector)


def test_verify_passes_where_all_is_well_and_closing_twice_is_harmless(database: Any) -> None:
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
        ({"url": "oracle://u:s3cret@h/d", "table": "p"}, "not known; known are sqlite, postgresql, mariadb and mysql"),
        ({"url": "no url s3cret", "table": "p"}, "no database URL"),
        ({"url": "sqlite://", "table": "p"}, "name the database file"),
        ({"url": "sqlite:///x.db"}, "either table or query"),
        ({"url": "sqlite:///x.db", "table": "p", "query": "SELECT 1"}, "either table or query"),
        ({"url": "sqlite:///x.db", "table": "p", "mode": "changes", "cursor": "at"}, "needs key"),
        ({"url": "sqlite:///x.db", "table": "p", "cursor": "at"}, "cursor is for mode: changes"),
    ],
)
def test_what_is_configured_wrongly_is_a_sentence_without_the_secret(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as error:
        DatabaseOptions.model_validate(options)
    assert "s3cret" not in "".join(str(mistake["msg"]) for mistake in error.value.errors())
