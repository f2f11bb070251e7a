"""The sweep finds what the method cannot, reads little, and needs no row index: it may be lost, old or damaged."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from connectors.database.port import Frame, ReadSession
from ingestd.core.mapping import EntrySpec
from tests.integration.connectors.database.changes.test_changes_in_mirror import MirroredTable
from tests.support.changing_table import Client, RestartingReader
from tests.support.crashing_sqlite import CrashPoint, ProcessDied, crashing
from tests.support.database_scene import DatabaseScene

SOURCES: list[tuple[str, dict[str, Any]]] = [
    ("postgresql", {}),
    ("postgresql", {"table": "w", "cursor": "at"}),
    ("mariadb", {"cursor": "at"}),
]
KEYS = {"the key of the row": "{id}", "a value": "{v}"}


def _change(rng: random.Random, client: Client, clock: str) -> None:
    """Change rows. Some changes leave no sign in the cursor column."""
    row, other, value = rng.randrange(8), rng.randrange(8), rng.choice("abcdef")
    match rng.choice(["write", "write", "delete", "move", "unsigned"]):
        case "write":
            client.do(f"DELETE FROM p WHERE id = {row}")
            client.do(f"INSERT INTO p VALUES ({row}, '{value}', {clock})")
        case "delete":
            client.do(f"DELETE FROM p WHERE id = {row}")
        case "move":
            client.do(f"DELETE FROM p WHERE id = {other}")
            client.do(f"UPDATE p SET id = {other} WHERE id = {row}")
        case "unsigned":
            client.do(f"UPDATE p SET v = '{value}' WHERE id = {row}")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("kind", "options"), SOURCES)
def test_the_sink_equals_the_table_after_a_sweep(
    scene: DatabaseScene, options: dict[str, Any], key: str, tmp_path: Path
) -> None:
    rng = random.Random(f"{scene.kind} {key}")
    mirrored = MirroredTable(scene, tmp_path, entry=EntrySpec(key=KEYS[key], value="{id} {v}"), **options)
    index, copy = tmp_path / "kept" / "rows.db", tmp_path / "copy.db"
    client = scene.client()
    for _ in range(40):
        for _ in range(rng.randrange(3)):
            _change(rng, client, scene.clock)
        match rng.randrange(12):
            case 0:
                mirrored.stop()
                mirrored.start()
            case 1:
                mirrored.stop()
                index.unlink(missing_ok=True)
                mirrored.start()
            case 2 if index.exists():
                shutil.copy(index, copy)
            case 3 if copy.exists():
                mirrored.stop()
                shutil.copy(copy, index)
                mirrored.start()
            case 4 if index.exists():
                mirrored.stop()
                index.write_bytes(rng.randbytes(5000))
                mirrored.start()
        is_sweep = rng.random() < 0.4
        mirrored.at += 3600 * is_sweep
        mirrored.poll()
        if is_sweep:
            rows = sorted((int(row[0] or 0), str(row[1])) for row in scene.rows().values())
            expected = {KEYS[key].format(id=id_, v=v): f"{id_} {v}" for id_, v in rows}
            found = mirrored.entries()
            # Which of several rows with one value is the last one is up to the database.
            assert found.keys() == expected.keys()
            assert set(found.values()) <= {f"{id_} {v}" for id_, v in rows}
    client.close()
    mirrored.stop()


class CountingScene(DatabaseScene):
    """Counts the rows and the bytes of text that a reading gets."""

    rows_read = 0
    bytes_read = 0

    def database(self, **options: Any) -> Any:
        database = super().database(**options)
        open_session = database.open

        @contextmanager
        def opened() -> Iterator[ReadSession]:
            with open_session() as session:
                frames = session.frames

                def counted(*selection: Any) -> Iterator[Frame]:
                    for frame in frames(*selection):
                        self.rows_read += frame.records.height
                        self.bytes_read += int(frame.records.estimated_size())
                        yield frame

                session.frames = counted  # type: ignore[assignment, method-assign]
                yield session

        database.open = opened  # type: ignore[method-assign]
        return database

    def take(self) -> tuple[int, int]:
        """Return the rows and bytes since the last call."""
        taken = self.rows_read, self.bytes_read
        self.rows_read = self.bytes_read = 0
        return taken


@pytest.mark.parametrize(("kind", "options"), SOURCES)
def test_an_unchanged_sweep_reads_keys_and_not_rows(scene: DatabaseScene, options: dict[str, Any]) -> None:
    scene = CountingScene(**vars(scene))
    client = scene.client()
    for row in range(100):
        client.do(f"INSERT INTO p VALUES ({row}, '{'x' * 20_000}', '2026-01-01')")
    at = 0.0
    cursor: Any = None

    def read(reader: Any) -> list[Any]:
        nonlocal cursor
        readings = list(reader.read(cursor))
        if readings:
            cursor = readings[-1].cursor
        return readings

    reader = scene.reader(now=lambda: at, **options)
    assert sum(one.frame.records.height for one in read(reader)) == 100
    assert scene.take()[1] > 2_000_000
    at += 3600
    (swept,) = read(reader)
    assert (swept.whole, swept.frame.records.height, swept.removed) == (False, 0, ())
    assert scene.take()[1] < 20_000
    client.do("DELETE FROM p WHERE id = 7")
    client.do("UPDATE p SET v = 'short' WHERE id = 8")
    at += 3600
    reader.close()
    reader = scene.reader(now=lambda: at, **options)  # after a restart the index is on disk
    (swept,) = read(reader)
    assert (swept.frame.records["id"].to_list(), swept.removed) == (["8"], ("id=7",))
    assert scene.take()[1] < 20_000
    reader.close()
    client.close()


def test_rows_of_an_open_transaction_are_yielded_once_also_after_a_restart(postgresql: DatabaseScene) -> None:
    blocker, client = postgresql.client(), postgresql.client()
    blocker.do("BEGIN")
    blocker.do("INSERT INTO p VALUES (1000, 'x', now())")  # from here on all rows are read again
    reader = postgresql.reader()
    *_, last = reader.read(None)
    client.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 300) g")
    readings = list(reader.read(last.cursor))
    assert sum(one.frame.records.height for one in readings) == 300
    reader.close()
    restarted = postgresql.reader()
    assert list(restarted.read(readings[-1].cursor)) == []
    assert list(restarted.read(last.cursor)) != []  # an older cursor: what was yielded since is not known
    restarted.close()
    blocker.do("ROLLBACK")
    for one in (blocker, client):
        one.close()


def test_a_reading_that_ended_early_is_not_taken_as_stored(postgresql: DatabaseScene) -> None:
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 200) g")
    reader = postgresql.reader()
    *_, last = reader.read(None)
    postgresql.do("UPDATE p SET v = 'b'")
    assert next(reader.read(last.cursor)).frame.records["v"][0] == "b"  # the intake may have stored these rows
    postgresql.do("UPDATE p SET v = 'a'")
    reader.close()
    again = list(postgresql.reader().read(last.cursor))
    assert _rows(again) >= 100


def _rows(readings: Sequence[Any]) -> int:
    return sum(one.frame.records.height for one in readings)


@pytest.mark.parametrize(
    "statement", ["INSERT INTO p2 VALUES (1, 'b')", "INSERT INTO p2 SELECT g, 'b' FROM generate_series(1, 6000) g"]
)
def test_a_sweep_reads_everything_if_keys_repeat_or_many_rows_differ(postgresql: DatabaseScene, statement: str) -> None:
    postgresql.do(
        "DROP TABLE IF EXISTS p2 CASCADE",
        "CREATE TABLE p2 (id int, v text, at timestamptz)",
        "CREATE VIEW w2 AS SELECT * FROM p2",
        "INSERT INTO p2 VALUES (1, 'a')",
    )
    at = 0.0
    reader = postgresql.reader(table="w2", cursor="at", now=lambda: at)
    *_, last = reader.read(None)
    postgresql.do(statement)
    at += 3600
    readings = list(reader.read(last.cursor))
    assert all(one.whole for one in readings)
    reader.close()


def test_a_process_that_dies_at_any_statement_of_the_row_index_loses_no_change(
    postgresql: DatabaseScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point, crash_point = 0, CrashPoint(0)

    def connect(path: Path | None) -> sqlite3.Connection:
        opened = sqlite3.connect(
            path or "", isolation_level=None, check_same_thread=False, factory=crashing(crash_point)
        )
        sqlite3.Connection.execute(opened, "PRAGMA synchronous = OFF")  # only the process dies
        return opened

    monkeypatch.setattr("connectors.database.changes.row_index._connect", connect)
    client = postgresql.client()
    while not point or crash_point.reached:
        point += 1
        crash_point = CrashPoint(0)
        client.do("TRUNCATE p; INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 5) g")
        postgresql.base = tmp_path / str(point)
        postgresql.base.mkdir()
        reader = RestartingReader(lambda now: postgresql.reader(now=now, batch_rows=2, whole_seconds=10**7), 0)
        reader.poll()
        crash_point = CrashPoint(point)
        reader.restart()
        with suppress(ProcessDied):
            client.do("UPDATE p SET v = 'b' WHERE id <= 3")
            reader.poll()
            client.do("DELETE FROM p WHERE id = 4; UPDATE p SET v = 'c' WHERE id = 5")
            reader.sweep()
            reader.reset()
            reader.poll()  # a whole reading
        died, crash_point = crash_point, CrashPoint(0)
        client.do("UPDATE p SET v = 'a'; INSERT INTO p VALUES (4, 'a', now()) ON CONFLICT DO NOTHING")
        reader.restart()
        reader.poll()
        assert reader.rows == postgresql.rows(), (point, died.statement)
        client.do("DELETE FROM p WHERE id = 1")
        reader.sweep()
        assert reader.rows == postgresql.rows(), (point, died.statement)
        reader.close()
        crash_point = died
    client.close()
    assert point > 40
