"""What each method does with values, clocks and sources that are not as expected."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ingestd.sdk import SourceBroken
from tests.support.changing_table import RestartingReader, SqlClient
from tests.support.database_scene import DatabaseScene

VIEW: dict[str, Any] = {"table": "w", "cursor": "at"}


def reader_of(scene: DatabaseScene, **settings: Any) -> RestartingReader:
    reader = RestartingReader(lambda now: scene.reader(now=now, **settings), 0)
    reader.poll()
    return reader


def test_many_rows_of_one_time_are_yielded_once_and_the_cursor_stays_small(postgresql: DatabaseScene) -> None:
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 4000) g")
    for settings in ({}, VIEW):
        reader = reader_of(postgresql, batch_rows=1000, **settings)
        writer = postgresql.client()
        writer.do("BEGIN")  # the bound can't move while this transaction is open
        writer.do("INSERT INTO p VALUES (0, 'open', now())")
        reader.poll()
        postgresql.do("UPDATE p SET v = v || 'b', at = now() WHERE id > 0")
        before = reader.read
        for _ in range(3):
            reader.poll()
        assert reader.read - before == 4000
        assert len(json.dumps(reader.cursor)) < 600
        writer.do("ROLLBACK")
        writer.close()


def test_missing_infinite_and_future_times_do_not_move_the_bound_and_are_counted(postgresql: DatabaseScene) -> None:
    reader = reader_of(postgresql, **VIEW)
    postgresql.do(
        "INSERT INTO p VALUES (1, 'a', NULL), (2, 'a', 'infinity'), (3, 'a', '2300-01-01')",
        "INSERT INTO p VALUES (4, 'a', '-infinity'), (5, 'a', now())",
    )
    reader.poll()
    assert set(reader.rows) == {"5"}
    reader.sweep()
    assert reader.rows == postgresql.rows()
    assert reader.notice.startswith("4 rows have a at that is NULL, infinite or in the future")
    postgresql.do("INSERT INTO p VALUES (6, 'a', now())")
    reader.poll()
    assert "6" in reader.rows


def test_deletes_changed_keys_and_earlier_times_are_found_by_the_sweep(postgresql: DatabaseScene) -> None:
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 5) g")
    for settings in ({}, VIEW):
        reader = reader_of(postgresql, **settings)
        postgresql.do(
            "DELETE FROM p WHERE id = 1",
            "UPDATE p SET id = 9 WHERE id = 2",
            "UPDATE p SET v = 'b', at = '2001-01-01' WHERE id = 3",
        )
        reader.sweep()
        assert reader.rows == postgresql.rows()
        postgresql.do("DELETE FROM p", "INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 5) g")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE p ADD COLUMN extra text DEFAULT 'x'", "the columns"),
        ("ALTER TABLE p ALTER COLUMN v SET DEFAULT 'x'", "the definition of the table"),
        ("TRUNCATE p", "the definition of the table"),
    ],
)
def test_a_change_of_the_table_that_touches_no_row_is_reported_and_read_whole(
    postgresql: DatabaseScene, change: str, words: str
) -> None:
    postgresql.do("INSERT INTO p VALUES (1, 'a', now())")
    reader = reader_of(postgresql)
    postgresql.do(change)
    reader.poll()
    assert reader.whole == 2
    assert reader.rows == postgresql.rows()
    (report,) = postgresql.reports
    assert "is read whole, because" in report
    assert words in report


def test_labels_of_an_enumeration_are_part_of_the_table(postgresql: DatabaseScene) -> None:
    postgresql.do(
        "DROP TYPE IF EXISTS state CASCADE", "CREATE TYPE state AS ENUM ('wip')", "ALTER TABLE p ADD COLUMN s state"
    )
    postgresql.do("INSERT INTO p VALUES (1, 'a', now(), 'wip')")
    reader = reader_of(postgresql)
    postgresql.do("ALTER TYPE state RENAME VALUE 'wip' TO 'draft'")
    reader.poll()
    assert reader.rows == postgresql.rows()


def test_rows_of_an_attached_partition_are_read(postgresql: DatabaseScene) -> None:
    postgresql.do(
        "DROP TABLE p CASCADE", "CREATE TABLE p (id int, v text, at timestamptz) PARTITION BY LIST (v)",
        "CREATE TABLE p_a PARTITION OF p FOR VALUES IN ('a')", "CREATE TABLE p_b (id int, v text, at timestamptz)",
        "INSERT INTO p VALUES (1, 'a', now())", "INSERT INTO p_b VALUES (2, 'b', now())",
    )  # fmt: skip
    reader = reader_of(postgresql)
    assert reader.method == "xmin"
    assert set(reader.rows) == {"1"}
    postgresql.do("ALTER TABLE p ATTACH PARTITION p_b FOR VALUES IN ('b')")
    reader.poll()
    assert reader.rows == postgresql.rows()
    postgresql.do("DROP TABLE IF EXISTS p CASCADE")


def test_each_request_of_a_whole_reading_leads_to_one(postgresql: DatabaseScene) -> None:
    postgresql.do("INSERT INTO p VALUES (1, 'a', now())")
    reader = reader_of(postgresql)
    for number in range(2, 5):
        reader.reset()
        reader.poll()
        reader.poll()
        assert reader.whole == number


def test_another_query_is_reported_and_read_whole(postgresql: DatabaseScene) -> None:
    postgresql.do("INSERT INTO p VALUES (1, 'a', now() - interval '1 day')")
    reader = reader_of(postgresql, query="SELECT * FROM p WHERE id > 1", cursor="at")
    assert reader.rows == {}
    reader.replace(lambda now: postgresql.reader(now=now, query="SELECT * FROM p", cursor="at"))
    reader.poll()
    assert reader.rows == postgresql.rows()
    assert postgresql.reports == [
        "The query is read whole, because the address, the table or query, or the cursor column and its settings changed."
    ]


def test_a_number_is_followed_with_a_lag_only(postgresql: DatabaseScene) -> None:
    postgresql.do("DROP VIEW w", "CREATE VIEW w AS SELECT *, id AS number, id::float8 AS measure FROM p")
    reader = reader_of(postgresql, table="w", cursor="number")
    assert reader.method == "whole"
    reader = reader_of(postgresql, table="w", cursor="measure", lag_seconds=0.000001)
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 5) g")
    for _ in range(3):
        reader.poll()
    whole = reader.whole
    postgresql.do("INSERT INTO p VALUES (6, 'a', now())")
    reader.poll()
    assert (reader.method, reader.whole) == ("lag", whole)
    assert reader.rows.keys() == {"1", "2", "3", "4", "5", "6"}


def test_a_column_that_is_neither_time_nor_number_is_refused(postgresql: DatabaseScene) -> None:
    with pytest.raises(SourceBroken, match="cursor needs a column with a date and time, or with a number"):
        reader_of(postgresql, table="w", cursor="v")


@pytest.mark.parametrize(
    ("type_", "zone"),
    [("timestamp", "Europe/Berlin"), ("timestamp", "Australia/Lord_Howe"), ("date", "America/New_York")],
)
def test_local_times_are_followed_in_their_zone(postgresql: DatabaseScene, type_: str, zone: str) -> None:
    postgresql.do("DROP VIEW w", f"CREATE VIEW w AS SELECT id, v, (at AT TIME ZONE '{zone}')::{type_} AS at FROM p")
    reader = reader_of(postgresql, **VIEW, cursor_timezone=zone)
    whole = 0
    while whole != reader.whole:  # readings are whole until the transactions that other tests ran before have ended
        whole = reader.whole
        reader.poll()
    for number in range(3):
        postgresql.do(f"INSERT INTO p VALUES ({number}, 'a', now())")
        reader.poll()
        assert len(reader.rows) == number + 1
    assert reader.whole == whole


def test_a_time_zone_that_mariadb_does_not_know_is_refused(mariadb: DatabaseScene) -> None:
    with pytest.raises(SourceBroken, match=r"does not know the time zone Mars/Base \(cursor_timezone\)"):
        reader_of(mariadb, cursor="at", cursor_timezone="Mars/Base")


def test_mariadb_without_the_privilege_needs_a_lag(mariadb: DatabaseScene) -> None:
    mariadb.do(
        "CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'reader'",
        "CREATE OR REPLACE USER reader@localhost IDENTIFIED BY 'reader'",
        "GRANT SELECT ON test.* TO reader@'%'", "GRANT SELECT ON test.* TO reader@localhost",
    )  # fmt: skip
    mariadb.url = mariadb.url.replace("root@", "reader:reader@")
    reader = reader_of(mariadb, cursor="at")
    assert reader.method == "lag"
    assert "GRANT PROCESS" in reader.improvement
    mariadb.do("INSERT INTO p VALUES (1, 'a', NOW(6))")
    reader.poll()
    assert reader.rows == mariadb.rows()


def test_mariadb_statements_that_wait_for_a_lock_of_the_table_are_waited_for(mariadb: DatabaseScene) -> None:
    """Their time is fixed before they wait, and they are in no list of transactions meanwhile."""
    reader = reader_of(mariadb, cursor="at", slack_seconds=0.0)
    owner, writer = mariadb.client(), mariadb.client()
    assert isinstance(owner, SqlClient)
    assert isinstance(writer, SqlClient)
    owner.do("LOCK TABLES p READ")
    with writer.in_background("INSERT INTO p VALUES (1, 'late', NOW(6))", seen_by=owner):
        for _ in range(3):
            reader.poll()
        owner.do("UNLOCK TABLES")
    for _ in range(20):  # an old list of transactions holds the row back until the next poll
        reader.poll()
        if reader.rows == mariadb.rows():
            break
    else:
        pytest.fail(f"{reader.rows} instead of {mariadb.rows()}")
    owner.close()
    writer.close()


def test_mariadb_lists_transactions_anew_for_readings_that_follow_each_other_fast(mariadb: DatabaseScene) -> None:
    """The server lists transactions again only if no client has read the list for 0.1 s; an older list holds former readers."""
    readers = [reader_of(mariadb, cursor="at", slack_seconds=0.0) for _ in range(3)]
    for _ in range(10):
        for reader in readers:
            reader.poll()
    assert all(reader.whole <= 4 for reader in readers), [reader.whole for reader in readers]


def test_mariadb_transactions_are_waited_for_although_others_read_their_list_all_the_time(
    mariadb: DatabaseScene,
) -> None:
    monitor, writer = mariadb.client(), mariadb.client()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            monitor.do("SELECT count(*) FROM information_schema.innodb_trx")

    reader = reader_of(mariadb, cursor="at", slack_seconds=0.0)
    time.sleep(0.2)
    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(watch)
        try:
            time.sleep(0.2)  # their list is that of the first time
            writer.do("BEGIN")
            writer.do("INSERT INTO p VALUES (1, 'late', NOW(6))")
            for _ in range(5):
                reader.poll()
            writer.do("COMMIT")
            reader.poll()
        finally:
            over.set()
        watching.result()
    assert reader.rows == mariadb.rows()
    monitor.close()
    writer.close()


def test_a_sqlite_file_is_read_after_a_commit_and_when_it_is_replaced(sqlite: DatabaseScene) -> None:
    sqlite.do("INSERT INTO p VALUES (1, 'a', '')")
    reader = reader_of(sqlite)
    for _ in range(3):
        reader.poll()
    assert reader.whole == 1
    sqlite.do("DELETE FROM p")
    reader.poll()
    assert (reader.whole, reader.rows) == (2, {})
    other = sqlite.base / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT, at TEXT)")
        connection.execute("INSERT INTO p VALUES (7, 'replaced', '')")
    connection.close()
    other.rename(sqlite.base / "p.db")
    reader.poll()
    assert reader.rows == sqlite.rows()
    reader.close()
