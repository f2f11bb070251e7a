"""Changes by a logical replication slot: removed rows are found at once, and nothing is lost when a reading is not stored."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Partition, SourceContext
from tests.integration.connectors.database.changes.test_changes_in_mirror import MirroredTable
from tests.support.database_scene import DatabaseScene, postgresql_scene
from tests.support.postgres_server import PostgresServer, postgresql_server

SLOT: dict[str, Any] = {"slot": "ingestd_p", "publication": "Parts"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    settings = ["wal_level=logical", "max_prepared_transactions=5"]
    with postgresql_server(*(f"-c {setting}" for setting in settings)) as started:
        yield started


@pytest.fixture
def scene(server: PostgresServer, tmp_path: Path) -> Iterator[DatabaseScene]:
    scene = postgresql_scene(server, tmp_path)
    scene.do(
        "DROP TABLE IF EXISTS p CASCADE",
        "CREATE TABLE p (large text, id int PRIMARY KEY, v text, at timestamptz)",
        "ALTER TABLE p ALTER large SET STORAGE EXTERNAL",
        'CREATE PUBLICATION "Parts" FOR TABLE p',
        "SELECT pg_create_logical_replication_slot('ingestd_p', 'pgoutput')",
    )
    with closing(scene):
        yield scene
    scene.do(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots", 'DROP PUBLICATION IF EXISTS "Parts"'
    )


@pytest.fixture
def mirrored(scene: DatabaseScene, tmp_path: Path) -> Iterator[MirroredTable]:
    scene.do("INSERT INTO p SELECT NULL, g, 'a' FROM generate_series(1, 5) g")
    table = MirroredTable(scene, tmp_path, **SLOT)
    assert table.poll() == 5
    assert table.poll() == 0
    assert method(table) == "Changes are found by the method 'slot'."
    yield table
    table.stop()


def method(table: MirroredTable) -> str:
    return next(iter(table.connector.notices()))


def entries(**values: str) -> dict[str, str]:
    return {key[1:]: value for key, value in values.items()}


def test_each_kind_of_change_is_found_by_the_next_reading(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    steps: list[tuple[list[str], int | None, dict[str, str]]] = [
        # the statements, the number of rows that are read (None: also a sweep's), and the entries after it
        (["INSERT INTO p VALUES ('x', 6, 'a')", "UPDATE p SET v = 'b' WHERE id = 5"], 2, entries(_5="b", _6="a")),
        (["DELETE FROM p WHERE id IN (1, 2)"], None, entries(_5="b", _6="a")),
        (["DELETE FROM p WHERE id = 3", "INSERT INTO p VALUES ('', 3, 'c')"], 1, entries(_3="c", _5="b", _6="a")),
        (["UPDATE p SET id = 9 WHERE id = 5"], None, entries(_3="c", _6="a", _9="b")),
        (["TRUNCATE p", "INSERT INTO p VALUES ('', 7, 'z')"], None, entries(_7="z")),
    ]
    scene.do("DELETE FROM p WHERE id = 4")
    mirrored.poll()
    assert mirrored.entries() == entries(_1="a", _2="a", _3="a", _5="a")
    for statements, read, expected in steps:
        scene.do(*statements)
        found = mirrored.poll()
        assert read in {found, None}
        assert expected.items() <= mirrored.entries().items()
        assert mirrored.entries() == {str(key): value for key, value in present(scene)}
    assert mirrored.poll() == 0


def test_a_large_value_that_an_update_leaves_is_read_from_the_table(
    scene: DatabaseScene, mirrored: MirroredTable, tmp_path: Path
) -> None:
    scene.do("UPDATE p SET large = repeat('x', 100000) WHERE id = 1")
    mirrored.poll()
    scene.do("UPDATE p SET v = 'b' WHERE id = 1")  # the slot has no value for large now
    options = DatabaseOptions.model_validate({"url": scene.url, "table": "p", "key": "id", "mode": "changes"} | SLOT)
    context = SourceContext(pipeline="pipe", base=tmp_path, now=lambda: 0.0)
    with closing(DatabaseConnector(options, context)) as connector:
        cursor = {row["id"]: row for row in rows(connector, None)}
    assert (len(cursor["1"]["large"]), cursor["1"]["v"]) == (100_000, "b")
    assert mirrored.poll() == 1
    assert mirrored.entries()["1"] == "b"


def rows(connector: DatabaseConnector, cursor: Any) -> list[dict[str, Any]]:
    batches = connector.read(Partition(name="p"), cursor)
    return [row for batch in batches for row in batch.records.iter_rows(named=True)]


def test_a_prepared_transaction_is_found_when_it_is_committed(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    client = scene.client()
    client.do("BEGIN")
    client.do("DELETE FROM p WHERE id = 1")
    client.do("UPDATE p SET v = 'p' WHERE id = 2")
    client.do("PREPARE TRANSACTION 'one'")
    scene.do("UPDATE p SET v = 'b' WHERE id = 3")
    assert mirrored.poll() == 1
    assert mirrored.poll() == 0
    client.do("COMMIT PREPARED 'one'")
    mirrored.poll()
    assert mirrored.entries() == entries(_2="p", _3="b", _4="a", _5="a")
    client.close()


def test_a_late_commit_and_a_savepoint_are_found(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    client = scene.client()
    client.do("BEGIN")
    client.do("UPDATE p SET v = 'l' WHERE id = 1")
    client.do("SAVEPOINT s")
    client.do("DELETE FROM p WHERE id = 2")
    scene.do("UPDATE p SET v = 'b' WHERE id = 3")
    mirrored.poll()
    client.do("COMMIT")
    client.close()
    mirrored.poll()
    assert mirrored.entries() == entries(_1="l", _3="b", _4="a", _5="a")


@pytest.mark.parametrize("seed", range(1))
def test_the_mirror_equals_the_table_after_each_reading(scene: DatabaseScene, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = MirroredTable(scene, tmp_path, **SLOT)
    client = scene.client()
    for _ in range(30):
        for _ in range(rng.randrange(4)):
            one, other, value = rng.randrange(6), rng.randrange(6), rng.choice("ab")
            client.do(
                rng.choice(
                    [
                        f"INSERT INTO p VALUES ('', {one}, '{value}') ON CONFLICT (id) DO UPDATE SET v = '{value}'",
                        f"UPDATE p SET v = '{value}' WHERE id = {one}",
                        f"DELETE FROM p WHERE id = {one}",
                        f"UPDATE p SET id = {other} WHERE id = {one} AND NOT EXISTS (SELECT FROM p WHERE id = {other})",
                    ]
                )
            )
        if rng.random() < 0.2:
            table.stop()
            table.start()
        if rng.random() < 0.2:
            lost_reading(table)
        table.poll()
        assert table.entries() == {str(key): value for key, value in present(scene)}
    client.close()
    table.stop()


def present(scene: DatabaseScene) -> list[tuple[int, str]]:
    with psycopg.connect(scene.url) as connection:
        return connection.execute("SELECT id, v FROM p").fetchall()


def lost_reading(table: MirroredTable) -> None:
    """Read in another process's place, and store nothing: what a kill between the reading and its commit leaves."""
    cursor = table.cursor()
    fresh = DatabaseConnector(table.connector.options, table.connector.context)
    for _ in fresh.read(Partition(name="p"), cursor):
        pass
    fresh.close()


def test_a_reading_that_was_not_stored_is_repeated(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    scene.do("UPDATE p SET v = 'b' WHERE id = 1", "DELETE FROM p WHERE id = 2")
    for _ in range(3):
        lost_reading(mirrored)
    mirrored.stop()
    mirrored.start()
    mirrored.poll()
    assert mirrored.entries() == entries(_1="b", _3="a", _4="a", _5="a")


def test_a_commit_that_is_in_the_log_before_it_is_visible_is_not_missed(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do("ALTER SYSTEM SET synchronous_standby_names = 'none'", "SELECT pg_reload_conf()")
    client = scene.client()
    waiting = threading.Thread(
        target=lambda: client.do("WITH d AS (DELETE FROM p WHERE id = 2) UPDATE p SET v = 'b' WHERE id = 1")
    )
    try:
        waiting.start()
        with psycopg.connect(scene.url, autocommit=True) as other:
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchone() is None:
                assert waiting.is_alive()
        for _ in range(3):
            mirrored.poll()  # the slot has the change, and the table does not
            assert mirrored.entries() == entries(_1="a", _2="a", _3="a", _4="a", _5="a")
    finally:
        scene.do("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        waiting.join()
        client.close()
    mirrored.poll()
    assert mirrored.entries() == entries(_1="b", _3="a", _4="a", _5="a")


def test_the_slot_releases_the_log_of_readings_that_are_stored(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    held = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) FROM pg_replication_slots"
    with psycopg.connect(scene.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE other AS SELECT repeat('x', 100) FROM generate_series(1, 20000)")
        connection.execute("DROP TABLE other")
        (before,) = connection.execute(held).fetchone() or (0,)
        assert before > 2_000_000
        mirrored.poll()
        mirrored.poll()
        (after,) = connection.execute(held).fetchone() or (0,)
        assert after < 10_000  # the log of other tables is released, too


def test_a_steady_stream_advances_the_slot_while_its_entries_are_pending(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    held = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
    written: list[str] = []
    with psycopg.connect(scene.url, autocommit=True) as connection:
        for number in range(4):
            connection.execute("UPDATE p SET v = %s", [f"v{number}"])
            (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
            written.append(end)
            assert mirrored.poll() == 5
            assert mirrored.mirror.status.pending() == 5  # nothing is delivered, and so nothing is acknowledged
            advanced = [connection.execute(held, [place]).fetchone() == (True,) for place in written]
            assert advanced == [True] * number + [False]  # up to the reading before this one


def test_many_changes_are_a_whole_reading_and_then_few_are_not(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    scene.do("INSERT INTO p SELECT '', g, 'm' FROM generate_series(100, 12000) g")
    assert mirrored.poll() == 11_901 + 5
    scene.do("UPDATE p SET v = 'b' WHERE id = 1")
    assert mirrored.poll() == 1


def test_a_slot_that_lost_its_log_is_explained_and_the_table_is_followed_without_it(
    server: PostgresServer, scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
    try:
        for _ in range(5):
            scene.do("CREATE TABLE other AS SELECT repeat('x', 1000) FROM generate_series(1, 5000)", "DROP TABLE other")
            scene.do("SELECT pg_switch_wal()", "CHECKPOINT")
        scene.do("UPDATE p SET v = 'b' WHERE id = 1", "DELETE FROM p WHERE id = 2")
        mirrored.poll()
        assert mirrored.entries() == entries(_1="b", _3="a", _4="a", _5="a")
        assert method(mirrored) == (
            "Changes are found by the method 'xmin'. The slot ingestd_p is not used. The server removed log that it held"
            " (max_slot_wal_keep_size): drop the slot and create it again; 'ingestd database sql' prints the statements."
        )
        scene.do(
            "SELECT pg_drop_replication_slot('ingestd_p')",
            "DELETE FROM p WHERE id = 3",
            "SELECT pg_create_logical_replication_slot('ingestd_p', 'pgoutput')",
        )
        mirrored.poll()
        assert method(mirrored) == "Changes are found by the method 'slot'."
        assert mirrored.entries() == entries(_1="b", _4="a", _5="a")
    finally:
        scene.do("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_a_slot_that_was_created_again_between_two_readings_is_a_whole_reading(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do(
        "SELECT pg_drop_replication_slot('ingestd_p')",
        "DELETE FROM p WHERE id = 1",
        "SELECT pg_create_logical_replication_slot('ingestd_p', 'pgoutput')",
    )
    mirrored.poll()
    assert mirrored.entries() == entries(_2="a", _3="a", _4="a", _5="a")


UNUSABLE = [
    # the statement, the sentence, and the statement that makes the slot usable again
    (
        "SELECT pg_drop_replication_slot('ingestd_p')",
        "There is no such slot: create it",
        "SELECT pg_create_logical_replication_slot('ingestd_p', 'pgoutput')",
    ),
    (
        'DROP PUBLICATION "Parts"',
        "The publication Parts does not publish all changes of the table",
        'CREATE PUBLICATION "Parts" FOR TABLE p',
    ),
    (
        """ALTER PUBLICATION "Parts" SET (publish = 'insert')""",
        "does not publish all changes",
        """ALTER PUBLICATION "Parts" SET (publish = 'insert, update, delete, truncate')""",
    ),
    (
        'ALTER PUBLICATION "Parts" SET TABLE p WHERE (id > 3)',
        "has a row filter, which hides changes",
        'ALTER PUBLICATION "Parts" SET TABLE p',
    ),
    (
        "ALTER TABLE p REPLICA IDENTITY NOTHING",
        "replica identity of the table does not hold key",
        "ALTER TABLE p REPLICA IDENTITY DEFAULT",
    ),
    (
        """ALTER TABLE p ALTER v SET NOT NULL; CREATE UNIQUE INDEX other ON p (v) INCLUDE (id);
        ALTER TABLE p REPLICA IDENTITY USING INDEX other""",
        "replica identity of the table does not hold key",
        "ALTER TABLE p REPLICA IDENTITY DEFAULT",
    ),
    ("ALTER ROLE reader NOREPLICATION", "The user lacks REPLICATION", "ALTER ROLE reader REPLICATION"),
]


def test_a_slot_that_can_not_be_used_is_explained(scene: DatabaseScene) -> None:
    scene.do("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN REPLICATION", "GRANT SELECT ON p TO reader")
    url = scene.url.replace("postgres@", "reader@")
    options = DatabaseOptions.model_validate({"url": url, "table": "p", "key": "id", "mode": "changes"} | SLOT)
    connector = DatabaseConnector(options, SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0))

    def changes() -> str:
        return next(step.sentence for step in connector.verify() if step.name == "changes")

    for statement, sentence, remedy in UNUSABLE:
        scene.do(statement)
        found = changes()
        assert "found by the method 'xmin'" in found
        assert sentence in found
        scene.do(remedy)
        assert "found by the method 'slot'" in changes()
    scene.do("DROP OWNED BY reader", "DROP ROLE reader")


def test_a_slot_that_is_far_behind_is_skipped_and_the_table_is_read_whole(scene: DatabaseScene, tmp_path: Path) -> None:
    scene.do("INSERT INTO p SELECT NULL, g, 'a' FROM generate_series(1, 5) g")
    table = MirroredTable(scene, tmp_path, **SLOT, slot_bytes=1_000_000)
    assert [table.poll(), table.poll()] == [5, 0]
    scene.do("UPDATE p SET v = 'b' WHERE id = 1", "DELETE FROM p WHERE id = 2")
    scene.do("CREATE TABLE other AS SELECT repeat('x', 100) FROM generate_series(1, 20000)", "DROP TABLE other")
    client = scene.client()
    client.do("BEGIN")
    client.do("UPDATE p SET v = 'l' WHERE id = 3")
    assert table.poll() == 4
    assert "more than slot_bytes. If so much is unread, the log is skipped" in method(table)
    assert table.entries() == entries(_1="b", _3="a", _4="a", _5="a")
    assert table.poll() == 4  # a transaction of that time is still open
    client.do("COMMIT")
    client.close()
    assert table.poll() == 4
    assert table.entries() == entries(_1="b", _3="l", _4="a", _5="a")
    scene.do("UPDATE p SET v = 'c' WHERE id = 4")
    assert table.poll() == 1
    assert table.entries() == entries(_1="b", _3="l", _4="c", _5="a")
    table.stop()


def test_another_replica_identity_that_holds_the_key_is_used(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    scene.do("ALTER TABLE p ALTER v SET NOT NULL", "CREATE UNIQUE INDEX other ON p (v, id)")
    for row, identity in enumerate(["FULL", "USING INDEX other"], start=1):
        scene.do(f"ALTER TABLE p REPLICA IDENTITY {identity}")
        mirrored.poll()
        scene.do(f"DELETE FROM p WHERE id = {row}", f"UPDATE p SET v = '{row}' WHERE id > 3")
        mirrored.poll()
        assert method(mirrored) == "Changes are found by the method 'slot'."
        assert mirrored.entries() == {str(key): value for key, value in present(scene)}


@pytest.mark.parametrize("by_root", ["true", "false"])
def test_a_partitioned_table_is_followed_also_when_a_row_moves(
    scene: DatabaseScene, tmp_path: Path, by_root: str
) -> None:
    scene.do(
        "DROP TABLE p CASCADE",
        "CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF p FOR VALUES FROM (10) TO (20)",
        f'ALTER PUBLICATION "Parts" SET (publish_via_partition_root = {by_root})',
        'ALTER PUBLICATION "Parts" ADD TABLE p',
        "INSERT INTO p VALUES (1, 'a'), (2, 'a'), (3, 'a'), (11, 'a')",
    )
    table = MirroredTable(scene, tmp_path, **SLOT)
    table.poll()
    assert method(table) == "Changes are found by the method 'slot'."
    scene.do(
        "UPDATE p SET id = 12 WHERE id = 1", "DELETE FROM high WHERE id = 11", "UPDATE low SET v = 'b' WHERE id = 2"
    )
    table.poll()
    assert table.entries() == entries(_2="b", _3="a", _12="a")
    scene.do("UPDATE p SET v = 'c' WHERE id = 12")
    assert table.poll() == 1
    table.stop()
    scene.do("DROP TABLE p CASCADE")


def test_a_key_of_several_columns_with_any_text_is_followed(scene: DatabaseScene, tmp_path: Path) -> None:
    scene.do(
        "DROP TABLE p CASCADE",
        'CREATE TABLE p (v text, "Wert ""x""" text, id text, at timestamptz, PRIMARY KEY (id, at, "Wert ""x"""))',
        'ALTER PUBLICATION "Parts" ADD TABLE p',
        "INSERT INTO p VALUES ('a', 'q', 'one', '2026-01-02 03:04:05.678+02'), ('a', E'\\'\\\\', 'ü', 'infinity')",
    )
    key = ["at", 'Wert "x"', "id"]
    table = MirroredTable(scene, tmp_path, **(SLOT | {"key": key}))
    assert table.poll() == 2
    scene.do("UPDATE p SET v = 'b'")
    assert table.poll() == 2
    assert table.entries() == {"one": "b", "ü": "b"}
    scene.do("DELETE FROM p WHERE id = 'ü'")
    table.poll()
    assert table.entries() == {"one": "b"}
    table.stop()
