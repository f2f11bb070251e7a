"""A reading through PgBouncer leaves nothing behind that another program would notice, and a login is tried once."""

from typing import Any

import psycopg
import pytest

from ingestd.sdk import SourceBroken, SourceUnavailable
from tests.support.private_servers import pgbouncer


def read(connector: Any) -> list[dict[str, Any]]:
    (partition,) = connector.partitions()
    return [row for batch in connector.read(partition, None) for row in batch.records.iter_rows(named=True)]


@pytest.fixture
def pooled(postgresql: Any) -> Any:
    postgresql.do(f"CREATE TABLE {postgresql.name('p')} (id INTEGER, at timestamptz)")
    postgresql.do(f"INSERT INTO {postgresql.name('p')} VALUES (1, '2026-01-02 03:04:05+02')")
    parts = psycopg.conninfo.conninfo_to_dict(postgresql.url)
    with pgbouncer(postgresql.url, {"postgres": "right"}) as pooler:
        postgresql.url = f"postgresql://postgres:right@{pooler.host}/{parts.get('dbname', 'postgres')}"
        postgresql.log = pooler.log
        yield postgresql


SETTINGS = (
    "TimeZone",
    "default_transaction_read_only",
    "statement_timeout",
    "lock_timeout",
    "row_security",
    "DateStyle",
)


def test_another_program_writes_through_the_same_connection_after_a_reading_and_keeps_its_settings(pooled: Any) -> None:
    connector = pooled.connector(table=pooled.name("p"), key="id")
    with psycopg.connect(pooled.url, autocommit=True, prepare_threshold=None) as other:
        before = [other.execute(f"SHOW {name}").fetchone() for name in SETTINGS]
        backend = other.execute("SELECT pg_backend_pid()").fetchone()
        for number in range(2, 6):
            assert len(read(connector)) == 1
            assert other.execute(f"UPDATE {pooled.name('p')} SET id = {number}").rowcount == 1
            assert read(connector) == [{"id": str(number), "at": "2026-01-02T01:04:05+00:00"}]
        assert [other.execute(f"SHOW {name}").fetchone() for name in SETTINGS] == before
        assert other.execute("SELECT pg_backend_pid()").fetchone() == backend  # there was one connection all the time


def test_a_reading_that_is_given_up_does_not_stop_the_others_of_the_pool(pooled: Any) -> None:
    pooled.do(f"INSERT INTO {pooled.name('p')} SELECT i, now() FROM generate_series(1, 200000) i")
    connector = pooled.connector(table=pooled.name("p"), batch_rows=10)
    (partition,) = connector.partitions()
    reading = connector.read(partition, None)
    next(reading)
    reading.close()
    with psycopg.connect(pooled.url, autocommit=True, prepare_threshold=None) as other:
        assert other.execute(f"UPDATE {pooled.name('p')} SET id = 0 WHERE id = 7").rowcount == 1


def test_a_startup_option_that_the_pooler_refuses_is_broken(pooled: Any) -> None:
    connector = pooled.connector(url=f"{pooled.url}?options=-ctimezone%3DUTC", table=pooled.name("p"))
    with pytest.raises(SourceBroken, match="unsupported startup parameter"):
        read(connector)


def test_a_refused_password_is_not_tried_again_until_the_operator_asks_for_it(pooled: Any) -> None:
    connector = pooled.connector(url=pooled.url.replace("right", "s3cret"), table=pooled.name("p"))

    def refused_logins() -> int:
        return int(pooled.log.read_text().count("login attempt"))

    for _ in range(3):
        with pytest.raises(SourceBroken, match=r"refuses the login.*does not try again") as error:
            read(connector)
        assert "s3cret" not in str(error.value)
    assert refused_logins() == 1
    assert "refuses the login" in str(connector.explain(pooled.name("p")))
    connector.reset()
    with pytest.raises(SourceBroken, match="refuses the login"):
        read(connector)
    assert refused_logins() == 2


def test_a_pooler_without_its_server_is_unavailable(tmp_path: Any, postgresql: Any) -> None:
    with pgbouncer("postgresql://postgres@127.0.0.1:1/test", {"postgres": "right"}, server_login_retry="1") as pooler:
        connector = postgresql.connector(
            url=f"postgresql://postgres:right@{pooler.host}/test", table="p", connect_timeout_seconds=3
        )
        with pytest.raises(SourceUnavailable, match="can't be reached"):
            read(connector)
