"""A backfill reads every row again in pages, while a table changes, a daemon restarts or a run is held."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.database.changes.backfill import begin_backfill, cancel_backfill
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec
from ingestd.sdk import Cursor, SourceBroken
from tests.integration.connectors.database.changes.test_changes_in_mirror import MirroredTable
from tests.support.database_scene import DatabaseScene

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("postgresql", {}),
    ("postgresql", {"table": "w", "cursor": "at"}),
    ("mariadb", {"cursor": "at"}),
    ("sqlite", {}),
]
ROWS = 40
PAGE = 7


def filled(scene: DatabaseScene, rows: int = ROWS) -> None:
    scene.do(*(f"INSERT INTO p VALUES ({row}, 'a', {scene.clock})" for row in range(rows)))


def store(mirrored: MirroredTable, change: Callable[[Cursor], Cursor | None]) -> None:
    """Change the cursor as an operator does."""
    table = mirrored.connector.options.table or ""
    cursor = mirrored.cursor(table)
    assert cursor is not None
    assert mirrored.mirror.cursors.set_cursor("pipe", table, change(cursor))


def begin(mirrored: MirroredTable) -> None:
    store(mirrored, lambda cursor: mirrored.connector.move_cursor(cursor, "backfill", ""))


def lose_values(mirrored: MirroredTable) -> None:
    """Have every desired value differ from the source, as another mapping would, although no row changes."""
    with closing(sqlite3.connect(mirrored.state)) as connection, connection:
        connection.execute("UPDATE entry SET value = 'lost'")


def drain(mirrored: MirroredTable, most: int = 100) -> int:
    """Read until no more is waiting; the number of passes."""
    for count in range(1, most):
        mirrored.poll()
        if mirrored.connector.waiting() is None:
            return count
    raise AssertionError("the backfill does not end")


def values(scene: DatabaseScene) -> dict[str, str]:
    return {key: str(row[1]) for key, row in scene.rows().items()}


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_every_row_is_mapped_again_in_pages_also_after_a_cancelled_backfill(
    scene: DatabaseScene, options: dict[str, Any], tmp_path: Path
) -> None:
    filled(scene)
    mirrored = MirroredTable(scene, tmp_path, batch_rows=PAGE, **options)
    mirrored.poll()
    lose_values(mirrored)
    mirrored.poll()
    assert set(mirrored.entries().values()) == {"lost"}
    begin(mirrored)
    mirrored.poll()
    assert any(f"{PAGE} of about {ROWS} rows were read" in notice for notice in mirrored.connector.notices())
    store(mirrored, lambda cursor: mirrored.connector.move_cursor(cursor, "cancel", ""))
    assert (mirrored.poll(), mirrored.connector.waiting()) == (0, None)
    assert list(mirrored.entries().values()).count("lost") == ROWS - PAGE
    assert not any("backfill" in notice for notice in mirrored.connector.notices())
    begin(mirrored)
    mirrored.poll()
    scene.do(f"INSERT INTO p VALUES (1000, 'new', {scene.clock})")
    assert drain(mirrored) >= ROWS // PAGE - 1
    assert mirrored.entries() == values(scene) | {"1000": "new"}
    assert "backfill" not in (mirrored.cursor(str(mirrored.connector.options.table)) or {})
    scene.do("DELETE FROM p WHERE id = 1000")
    mirrored.at += 10**4
    mirrored.poll()
    assert mirrored.entries() == values(scene)
    mirrored.stop()


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_writer_and_restarts_meanwhile_lose_nothing_and_leave_nothing_stale(
    scene: DatabaseScene, options: dict[str, Any], tmp_path: Path
) -> None:
    filled(scene)
    rng = random.Random(1)
    mirrored = MirroredTable(scene, tmp_path, batch_rows=PAGE, **options)
    mirrored.poll()
    lose_values(mirrored)
    begin(mirrored)
    client = scene.client()
    for _ in range(25):
        for _ in range(rng.randrange(3)):
            row, value = rng.randrange(-5, ROWS + 5), rng.choice("ab")
            client.do(f"DELETE FROM p WHERE id = {row}")
            if rng.random() < 0.7:
                client.do(f"INSERT INTO p VALUES ({row}, '{value}', {scene.clock})")
        if rng.random() < 0.2:
            mirrored.stop()
            mirrored.start()
        mirrored.poll()
    client.close()
    drain(mirrored)
    mirrored.at += 10**5  # a sweep finds the removed rows
    drain(mirrored)
    assert mirrored.entries() == values(scene)
    mirrored.stop()
    fresh = MirroredTable(scene, tmp_path / "fresh", **options)
    fresh.poll()
    assert mirrored.entries() == fresh.entries()
    fresh.stop()


@pytest.mark.parametrize(
    ("kind", "options"), [("postgresql", {"table": "w", "cursor": "at"}), ("mariadb", {"cursor": "at"})]
)
def test_it_ends_while_a_transaction_is_open_since_the_first_reading(
    scene: DatabaseScene, options: dict[str, Any], tmp_path: Path
) -> None:
    """The readings are whole until such a transaction ends. They would read the table again and again without a page."""
    filled(scene)
    open_transaction = scene.client()
    open_transaction.do("BEGIN")
    open_transaction.do("SELECT * FROM p")
    mirrored = MirroredTable(scene, tmp_path, batch_rows=PAGE, **options)
    mirrored.poll()
    begin(mirrored)
    scene.do(f"INSERT INTO p VALUES (-1, 'new', {scene.clock})")
    read = 0
    while True:
        lose_values(mirrored)
        read += mirrored.poll()
        if mirrored.connector.waiting() is None:
            break
        assert read < 3 * ROWS
    assert read == 2 * (ROWS + 1), "each row in one page and in one whole reading"
    assert mirrored.entries() == values(scene)
    open_transaction.do("COMMIT")
    open_transaction.close()
    mirrored.stop()


@pytest.mark.parametrize(("kind", "options"), KINDS[:3])
def test_a_paused_backfill_keeps_its_position(scene: DatabaseScene, options: dict[str, Any], tmp_path: Path) -> None:
    """A file has no removals before the last page, so none is held meanwhile."""
    filled(scene)
    mirrored = MirroredTable(scene, tmp_path, batch_rows=PAGE, guard=Guard(removed_percent=10), **options)
    while mirrored.poll():
        pass  # whole readings, until the transactions that ran before have ended
    begin(mirrored)
    mirrored.poll()
    table = str(mirrored.connector.options.table)
    position = (mirrored.cursor(table) or {})["backfill"]
    scene.do("DELETE FROM p WHERE id >= 10")
    mirrored.at += 10**7
    mirrored.poll()
    assert len(mirrored.mirror.status.held_runs()) == 1
    scene.do(f"INSERT INTO p VALUES (5000, 'a', {scene.clock})")
    for _ in range(3):
        mirrored.poll()
        assert mirrored.connector.waiting() is None
    (held,) = mirrored.mirror.status.held_runs()
    mirrored.mirror.intake.approve(held.run)
    assert (mirrored.cursor(table) or {})["backfill"] == position
    lose_values(mirrored)
    drain(mirrored)
    assert "backfill" not in (mirrored.cursor(table) or {})
    # The first page was read before the values were lost; nothing after it is left out.
    assert mirrored.entries() == values(scene) | {str(row): "lost" for row in range(PAGE)}
    mirrored.stop()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
def test_a_key_of_several_columns_with_equal_and_missing_values(
    scene: DatabaseScene, kind: str, tmp_path: Path
) -> None:
    scene.do("DROP TABLE IF EXISTS p CASCADE" if kind != "sqlite" else "DROP TABLE p")
    at = {"postgresql": "timestamptz", "mariadb": "datetime(6)", "sqlite": "TEXT"}[kind]
    scene.do(f"CREATE TABLE p (a varchar(9), b int, v varchar(9), at {at})")
    rows = [(f"'{a}'", b) for a in ("x", "X", "y", "ä", "") for b in range(-3, 6)]
    scene.do(*(f"INSERT INTO p VALUES ({a}, {b}, 'v', {scene.clock})" for a, b in rows))
    scene.do(f"INSERT INTO p VALUES (NULL, 1, 'v', {scene.clock}), ('z', NULL, 'v', {scene.clock})")
    cursor: dict[str, Any] = {"cursor": "at"} if kind == "mariadb" else {}
    mirrored = MirroredTable(
        scene, tmp_path, EntrySpec(key="{a}/{b}", value="{v}"), batch_rows=4, key=["a", "b"],
        **cursor,
    )  # fmt: skip
    mirrored.poll()
    expected = mirrored.entries()
    assert len(expected) >= 36
    lose_values(mirrored)
    begin(mirrored)
    drain(mirrored)
    assert mirrored.entries() == expected
    mirrored.stop()


def test_a_backfill_that_is_not_possible_is_refused(postgresql: DatabaseScene) -> None:
    with pytest.raises(SourceBroken, match="each reading is whole"):
        begin_backfill({"changes": 1}, postgresql.database(key="id").dialect)
    with pytest.raises(SourceBroken, match="needs the setting key"):
        begin_backfill({"changes": 1, "reading": "x"}, postgresql.database().dialect)
    with pytest.raises(SourceBroken, match="No backfill runs"):
        cancel_backfill({"changes": 1, "reading": "x"})
