"""Changes by MariaDB's binary log: removed rows are found at once, and a log that does not show them is a whole reading."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Partition, SourceContext
from tests.integration.connectors.database.changes.test_changes_in_mirror import MirroredTable
from tests.support.changing_table import SqlClient
from tests.support.database_scene import DatabaseScene
from tests.support.private_servers import MariadbServer, mariadb_connection, restartable_mariadb_server

BINLOG: dict[str, Any] = {"binlog": True}
OPTIONS = ("--log-bin=bin", "--binlog-format=ROW", "--server-id=7")


@pytest.fixture(scope="module", params=["checksums", "compressed"])
def server(request: pytest.FixtureRequest) -> Iterator[MariadbServer]:
    compressed = ("--log-bin-compress=ON", "--log-bin-compress-min-len=10", "--binlog-checksum=NONE")
    with restartable_mariadb_server(*OPTIONS, *(compressed if request.param == "compressed" else ())) as started:
        yield started


@pytest.fixture
def scene(server: MariadbServer, tmp_path: Path) -> DatabaseScene:
    scene = DatabaseScene(
        kind="mariadb",
        url=server.url,
        clock="NOW(6)",
        client=lambda: SqlClient("mariadb", lambda: mariadb_connection(server.url)),
        base=tmp_path,
        restart=server.restart,
    )
    scene.do(
        "DROP TABLE IF EXISTS child, p, other",
        "CREATE TABLE p (large longtext, n decimal(20,7), at datetime(3), e enum('x','y'), b bit(9), t time(2),"
        " s timestamp(6) NULL, id int PRIMARY KEY, f double, c char(200), v varchar(20), y year, g point)",
        "CREATE OR REPLACE VIEW w AS SELECT id, v FROM p",
    )
    return scene


@pytest.fixture
def mirrored(scene: DatabaseScene, tmp_path: Path) -> Iterator[MirroredTable]:
    scene.do(*(f"INSERT INTO p (id, v) VALUES ({number}, 'a')" for number in range(1, 6)))
    table = MirroredTable(scene, tmp_path, **BINLOG)
    assert table.poll() == 5
    assert table.poll() == 0
    assert method(table) == "Changes are found by the method 'binlog'."
    yield table
    table.stop()


def method(table: MirroredTable) -> str:
    return next(iter(table.connector.notices()))


def entries(**values: str) -> dict[str, str]:
    return {key[1:]: value for key, value in values.items()}


def present(scene: DatabaseScene) -> dict[str, str]:
    client = SqlClient("mariadb", lambda: mariadb_connection(scene.url))
    rows = client.fetch("SELECT id, v FROM p")
    client.close()
    return {str(key): value for key, value in rows}


def test_inserted_and_updated_rows_of_any_types_are_read_and_no_other(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do(
        "INSERT INTO p VALUES (REPEAT('x', 70000), -12345.678, NOW(3), 'y', b'1', '-11:12:13.5', NOW(6), -6, 0.5, 'ü', 'a', 2026,"
        " POINT(1, 2)), (NULL, 1, '1999-12-31', 'x', NULL, '1:1:1', '1999-12-31 01:02:03', 7, -1e300,"
        " REPEAT('c', 200), 'a', 1999, NULL)",
        "UPDATE p SET v = 'b' WHERE id = 2",
    )
    assert mirrored.poll() == 3
    assert method(mirrored) == "Changes are found by the method 'binlog'."
    assert mirrored.entries() == present(scene)
    scene.do("UPDATE p SET v = 'c' WHERE id IN (-6, 7)")
    assert mirrored.poll() == 2
    assert mirrored.entries() == present(scene)
    assert mirrored.poll() == 0


def test_a_removed_row_and_a_changed_key_are_found_by_the_next_reading(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do("DELETE FROM p WHERE id = 1", "UPDATE p SET id = 9 WHERE id = 2")
    mirrored.poll()
    assert mirrored.entries() == entries(_3="a", _4="a", _5="a", _9="a")
    scene.do("UPDATE p SET v = 'b' WHERE id = 9")
    assert mirrored.poll() == 1


def test_a_row_that_was_removed_and_inserted_again_is_no_whole_reading(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do("DELETE FROM p WHERE id = 2", "INSERT INTO p (id, v) VALUES (2, 'c')")
    assert mirrored.poll() == 1
    assert mirrored.entries()["2"] == "c"


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["TRUNCATE p", "INSERT INTO p (id, v) VALUES (7, 'z')"], "a statement that names the table"),
        (["RENAME TABLE p TO other", "CREATE TABLE p LIKE other"], "a statement that names the table"),
        (["SET SESSION binlog_format = 'STATEMENT'", "DELETE FROM p WHERE id = 3"], "a statement without its rows"),
        (
            ["SET SESSION binlog_format = 'STATEMENT'", "BEGIN", "UPDATE w SET v = 'w' WHERE id = 3", "COMMIT"],
            "a statement without its rows",
        ),
        (["XA START 'x'", "DELETE FROM p WHERE id = 3", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"], "of XA"),
    ],
)
def test_what_the_log_does_not_show_by_rows_is_a_whole_reading(
    scene: DatabaseScene, mirrored: MirroredTable, statements: list[str], reason: str
) -> None:
    scene.do(*statements)
    mirrored.poll()
    assert mirrored.entries() == present(scene)
    assert reason in method(mirrored)
    assert mirrored.poll() == 0
    assert method(mirrored) == "Changes are found by the method 'binlog'."


def test_a_statement_about_another_table_is_no_whole_reading(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    scene.do("CREATE TABLE other (a int)", "INSERT INTO other VALUES (1)", "UPDATE p SET v = 'b' WHERE id = 1")
    assert mirrored.poll() == 1
    assert mirrored.entries() == present(scene)


def test_a_prepared_transaction_is_found_when_it_is_committed(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    client = scene.client()
    client.do("XA START 'x'")
    client.do("DELETE FROM p WHERE id = 1")
    client.do("XA END 'x'")
    client.do("XA PREPARE 'x'")
    scene.do("UPDATE p SET v = 'b' WHERE id = 3")
    assert mirrored.poll() == 1
    assert mirrored.entries() == present(scene)
    client.do("XA COMMIT 'x'")
    client.close()
    mirrored.poll()
    assert mirrored.entries() == entries(_2="a", _3="b", _4="a", _5="a")


def test_a_late_commit_a_savepoint_and_several_domains_are_found(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    client = scene.client()
    client.do("SET SESSION gtid_domain_id = 5")
    client.do("BEGIN")
    client.do("UPDATE p SET v = 'l' WHERE id = 1")
    client.do("SAVEPOINT s")
    client.do("DELETE FROM p WHERE id = 2")
    client.do("ROLLBACK TO s")
    scene.do("UPDATE p SET v = 'b' WHERE id = 3")
    assert mirrored.poll() == 1
    client.do("COMMIT")
    client.do("UPDATE p SET v = 'd' WHERE id = 4")
    client.close()
    scene.do("UPDATE p SET v = 'e' WHERE id = 5")
    assert mirrored.poll() == 3
    assert mirrored.entries() == entries(_1="l", _2="a", _3="b", _4="d", _5="e")


def test_a_log_of_several_files_is_read_also_after_a_restart_of_the_server(
    scene: DatabaseScene, mirrored: MirroredTable, server: MariadbServer
) -> None:
    scene.do("UPDATE p SET v = 'b' WHERE id = 1", "FLUSH BINARY LOGS", "UPDATE p SET v = 'b' WHERE id = 2")
    scene.do("FLUSH BINARY LOGS")
    server.restart()
    assert mirrored.poll() == 2
    assert mirrored.entries() == present(scene)
    scene.do("UPDATE p SET v = 'c' WHERE id = 3")
    assert mirrored.poll() == 1
    assert method(mirrored) == "Changes are found by the method 'binlog'."


@pytest.mark.parametrize("loss", ["purged", "reset"])
def test_a_log_that_is_gone_is_a_whole_reading(scene: DatabaseScene, mirrored: MirroredTable, loss: str) -> None:
    scene.do("UPDATE p SET v = 'b' WHERE id = 1", "DELETE FROM p WHERE id = 2", "FLUSH BINARY LOGS")
    client = SqlClient("mariadb", lambda: mariadb_connection(scene.url))
    (name, *_) = client.fetch("SHOW MASTER STATUS")[0]
    if loss == "reset":
        client.do("RESET MASTER")
    else:
        client.do(f"PURGE BINARY LOGS TO '{name}'")
        until = time.monotonic() + 30
        while len(client.fetch("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < until
            client.do(f"PURGE BINARY LOGS TO '{name}'")  # the server keeps a file until the engine has written it
    client.close()
    mirrored.poll()
    assert mirrored.entries() == present(scene)
    assert "the server has not all of the log since the last reading" in method(mirrored)
    scene.do("UPDATE p SET v = 'c' WHERE id = 3")
    mirrored.poll()
    assert mirrored.entries() == present(scene)
    scene.do("UPDATE p SET v = 'd' WHERE id = 3")
    assert mirrored.poll() == 1


def test_a_minimal_row_image_has_the_primary_key(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    row_image = "SET SESSION binlog_row_image = 'MINIMAL'"
    scene.do(row_image, "UPDATE p SET v = 'b' WHERE id = 1", "UPDATE p SET id = 8 WHERE id = 2")
    mirrored.poll()
    assert mirrored.entries() == present(scene)
    scene.do(row_image, "UPDATE p SET v = 'c' WHERE id = 1", "INSERT INTO p (id, v) VALUES (11, 'z')")
    assert mirrored.poll() == 2
    assert mirrored.entries() == present(scene)


def test_a_minimal_row_image_without_the_key_is_a_whole_reading(scene: DatabaseScene, tmp_path: Path) -> None:
    scene.do("ALTER TABLE p ADD UNIQUE (v)", "INSERT INTO p (id, v) VALUES (1, 'a'), (2, 'b')")
    table = MirroredTable(scene, tmp_path, **(BINLOG | {"key": "v"}))
    assert table.poll() == 2
    scene.do("SET SESSION binlog_row_image = 'MINIMAL'", "DELETE FROM p WHERE id = 1")
    table.poll()
    assert "binlog_row_image leaves columns of key out" in method(table)
    assert table.entries() == present(scene)
    table.stop()


def test_many_changes_are_a_whole_reading(scene: DatabaseScene, mirrored: MirroredTable) -> None:
    scene.do("INSERT INTO p (id, v) SELECT seq, 'm' FROM seq_100_to_12000")
    assert mirrored.poll() == 11_906
    assert "more than 10,000 rows changed" in method(mirrored)
    scene.do("DELETE FROM p WHERE id = 100", "UPDATE p SET v = 'n' WHERE id = 101")
    mirrored.poll()
    assert mirrored.entries() == present(scene)


@pytest.mark.parametrize("seed", range(2))
def test_the_mirror_equals_the_table_after_each_reading(scene: DatabaseScene, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = MirroredTable(scene, tmp_path, **BINLOG)
    client = scene.client()
    for _ in range(30):
        for _ in range(rng.randrange(4)):
            one, other, value = rng.randrange(6), rng.randrange(6), rng.choice("ab")
            client.do(
                rng.choice(
                    [
                        f"INSERT INTO p (id, v) VALUES ({one}, '{value}') ON DUPLICATE KEY UPDATE v = '{value}'",
                        f"UPDATE p SET v = '{value}' WHERE id = {one}",
                        f"DELETE FROM p WHERE id = {one}",
                        f"UPDATE IGNORE p SET id = {other} WHERE id = {one}",
                        f"REPLACE INTO p (id, v) VALUES ({one}, '{value}')",
                        f"SET SESSION gtid_domain_id = {one}",
                    ]
                )
            )
        if rng.random() < 0.2:
            table.stop()
            table.start()
        if rng.random() < 0.2:
            scene.do("FLUSH BINARY LOGS")
        table.poll()
        assert table.entries() == present(scene)
    client.close()
    table.stop()


_KILLED = """
import os, signal, sys, json
from pathlib import Path
from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Partition, SourceContext
options, cursor = json.loads(sys.argv[1])
context = SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0)
connector = DatabaseConnector(DatabaseOptions.model_validate(options), context)
for batch in connector.read(Partition(name="p"), cursor):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_between_reading_and_commit_loses_nothing(
    scene: DatabaseScene, mirrored: MirroredTable
) -> None:
    scene.do("UPDATE p SET v = 'b' WHERE id = 1", "DELETE FROM p WHERE id = 2")
    options = {"url": scene.url, "table": "p", "key": "id", "mode": "changes", "deletes": "remove"} | BINLOG
    argument = json.dumps([options, dict(mirrored.cursor() or {})])
    done = subprocess.run([sys.executable, "-c", _KILLED, argument], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    mirrored.poll()
    assert mirrored.entries() == entries(_1="b", _3="a", _4="a", _5="a")


def test_a_key_of_several_columns_with_any_text_is_followed(scene: DatabaseScene, tmp_path: Path) -> None:
    scene.do(
        "DROP TABLE p",
        "CREATE TABLE p (v text, `Wert` varchar(300), id char(20), n bigint unsigned, d date, PRIMARY KEY (id, n, d, Wert))"
        " CHARACTER SET utf8mb4",
        "INSERT INTO p VALUES ('a', 'q', 'one', 18446744073709551615, '2026-11-23'), ('a', '''\\\\', 'ü', 0, '1000-01-01')",
    )
    table = MirroredTable(scene, tmp_path, **(BINLOG | {"key": ["d", "Wert", "id", "n"]}))
    assert table.poll() == 2
    scene.do("UPDATE p SET v = 'b'")
    assert table.poll() == 2
    assert table.entries() == {"one": "b", "ü": "b"}
    scene.do("UPDATE p SET id = 'ONE' WHERE id = 'one'", "DELETE FROM p WHERE id = 'ü'")
    table.poll()
    assert table.entries() == {"ONE": "b"}
    table.stop()


def described(scene: DatabaseScene, **options: Any) -> str:
    settings = {"url": scene.url, "table": "p", "key": "id", "mode": "changes"} | BINLOG | options
    connector = DatabaseConnector(
        DatabaseOptions.model_validate(settings), SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0)
    )
    (step,) = [step for step in connector.verify() if step.name == "changes"]
    return step.sentence


@pytest.mark.parametrize(
    ("statement", "undo", "sentence"),
    [
        (
            "SET GLOBAL binlog_format = 'MIXED'",
            "SET GLOBAL binlog_format = 'ROW'",
            "binlog_format is MIXED: set it to ROW",
        ),
        ("ALTER TABLE p ENGINE = Aria", "DO 1", "It needs a table with the engine InnoDB"),
        ("ALTER TABLE p MODIFY id decimal(9,2)", "DO 1", "has the type decimal(9,2): it needs an integer"),
        (
            "CREATE TABLE other (id int PRIMARY KEY)",
            "ALTER TABLE p ADD FOREIGN KEY (id) REFERENCES other (id) ON DELETE CASCADE",
            "",
        ),
    ],
)
def test_a_log_that_can_not_be_used_is_explained(
    scene: DatabaseScene, statement: str, undo: str, sentence: str
) -> None:
    scene.do(statement)
    try:
        found = described(scene)
    finally:
        scene.do(undo)
    assert sentence in found
    if not sentence:
        assert "A foreign key of the table changes rows by CASCADE" in described(scene)


def test_a_user_without_the_right_to_read_the_log_is_explained(scene: DatabaseScene) -> None:
    scene.do("CREATE OR REPLACE USER reader@'%'", "GRANT SELECT ON test.* TO reader@'%'")
    url = scene.url.replace("root@", "reader@")
    assert "The user lacks REPLICATION SLAVE" in described(scene, url=url)
    scene.do("GRANT REPLICATION SLAVE ON *.* TO reader@'%'")
    assert "found by the method 'binlog'" in described(scene, url=url)
    scene.do("INSERT INTO p (id, v) VALUES (1, 'a')")
    settings = {"url": url, "table": "p", "key": "id", "mode": "changes"} | BINLOG
    context = SourceContext(pipeline="pipe", base=scene.base, now=lambda: 0.0, cache_folder=scene.base / "kept")
    connector = DatabaseConnector(DatabaseOptions.model_validate(settings), context)
    (first,) = connector.read(Partition(name="p"), None)
    scene.do("INSERT INTO p (id, v) VALUES (2, 'a')")
    (second,) = connector.read(Partition(name="p"), first.cursor)
    assert (second.records["id"].to_list(), second.partial) == (["2"], True)
    connector.close()


def test_a_server_without_a_log_is_explained(mariadb: DatabaseScene) -> None:
    assert "The server has none: set log_bin" in described(mariadb)


@pytest.mark.parametrize(
    "options", [{"url": "postgresql://h/d"}, {"url": "mariadb://h/d", "mode": "snapshot"}, {"url": "sqlite:///p.db"}]
)
def test_the_binary_log_is_refused_for_another_source(options: dict[str, Any]) -> None:
    settings = {"table": "p", "key": "id", "mode": "changes"} | BINLOG | options
    with pytest.raises(ValueError, match="binlog is for mode: changes of a table of MariaDB"):
        DatabaseOptions.model_validate(settings)
