"""Readings of changes and whole ones alternate: the mirror holds the table's values after each reading."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.core.address import SinkAddress
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Partition
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Cursor, SourceContext
from tests.support.database_scene import DatabaseScene

SINK = SinkAddress(workspace="Bench", by="label", name="Rig")


class MirroredTable:
    """The table, the connector, the intake and the state file. ``at`` is the time of the connector, in seconds."""

    def __init__(
        self,
        scene: DatabaseScene,
        folder: Path,
        entry: EntrySpec = EntrySpec(key="{id}", value="{v}"),  # noqa: B008 - it is frozen
        guard: Guard = DEFAULT_GUARD,
        **options: Any,
    ) -> None:
        self.at = 0.0
        self._guard = guard
        self._scene = scene
        folder.mkdir(exist_ok=True)
        self._state = folder / "state.db"
        self._kept = folder / "kept"
        self._entry = entry
        self._options = {"url": scene.url, "table": "p", "key": "id", "mode": "changes", "deletes": "remove"} | options
        self.start()

    def start(self) -> None:
        self._mirror = SqliteMirror.open(self._state)
        self._mirror.intake.activate(["pipe"])
        options = DatabaseOptions.model_validate(self._options)
        self.connector = DatabaseConnector(
            options, SourceContext(pipeline="pipe", base=self._scene.base, now=lambda: self.at, cache_folder=self._kept)
        )
        self._reader = Reader(
            pipeline="pipe",
            connector=self.connector,
            mapping=Mapping([self._entry]),
            sink=SINK,
            mirror=self._mirror.intake,
            emit=lambda _: None,
            guard=self._guard,
        )

    @property
    def mirror(self) -> SqliteMirror:
        return self._mirror

    @property
    def state(self) -> Path:
        return self._state

    def stop(self) -> None:
        self.connector.close()
        self._mirror.close()

    def poll(self) -> int:
        """Read once; the number of records."""
        report = self._reader.read_pass()
        assert (report.away, report.broken, report.rejected) == ("", "", ())
        return sum(run.records for run in report.read)

    def cursor(self, table: str = "p") -> Cursor | None:
        return self._mirror.intake.open_partition("pipe", Partition(name=table), SINK, self._reader.digest).cursor

    def rejected(self) -> list[str]:
        with closing(sqlite3.connect(self._state)) as connection:
            return [position for (position,) in connection.execute("SELECT position FROM rejected ORDER BY 1")]

    def entries(self) -> dict[str, str]:
        with closing(sqlite3.connect(self._state)) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed"))


@pytest.mark.parametrize(
    ("kind", "options"),
    [("postgresql", {}), ("postgresql", {"table": "w", "cursor": "at"}), ("mariadb", {"cursor": "at"})],
)
def test_the_mirror_follows_the_table(scene: DatabaseScene, options: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(1)
    mirrored = MirroredTable(scene, tmp_path, **options)
    client = scene.client()
    deleted = False
    for _ in range(30):
        for _ in range(rng.randrange(3)):
            row, value = rng.randrange(6), rng.choice("ab")  # few values, so that rows return to former ones
            client.do(f"DELETE FROM p WHERE id = {row}")
            if rng.random() < 0.8:
                client.do(f"INSERT INTO p VALUES ({row}, '{value}', {scene.clock})")
            else:
                deleted = True
        if rng.random() < 0.1:
            mirrored.stop()
            mirrored.start()
        if rng.random() < 0.2:
            mirrored.at += 3600
            deleted = False
        mirrored.poll()
        table = {key: str(row[1]) for key, row in scene.rows().items()}
        entries = mirrored.entries()
        assert {key: entries.get(key) for key in table} == table
        assert deleted or entries == table
    client.close()
    mirrored.stop()


def test_keys_that_differ_only_in_where_a_comma_is_are_two_rows(postgresql: DatabaseScene, tmp_path: Path) -> None:
    postgresql.do(
        "DROP TABLE p CASCADE",
        "CREATE TABLE p (a text, b text, v text)",
        "INSERT INTO p VALUES ('1,b=2', '3', 'x'), ('1', '2,b=3', 'y')",
    )
    mirrored = MirroredTable(postgresql, tmp_path, entry=EntrySpec(key="{a}|{b}", value="{v}"), key=["a", "b"])
    mirrored.poll()
    assert mirrored.entries() == {"1,b=2|3": "x", "1|2,b=3": "y"}
    postgresql.do("UPDATE p SET v = 'z' WHERE a = '1'")
    assert mirrored.poll() == 1
    assert mirrored.entries() == {"1,b=2|3": "x", "1|2,b=3": "z"}
    mirrored.stop()


def test_a_sqlite_file_that_is_overwritten_by_one_with_as_many_commits_is_read(
    sqlite: DatabaseScene, tmp_path: Path
) -> None:
    sqlite.do("INSERT INTO p VALUES (1, 'a', 0)")
    file, other = tmp_path / "p.db", tmp_path / "other.db"
    shutil.copyfile(file, other)
    mirrored = MirroredTable(sqlite, tmp_path / "daemon")
    sqlite.do("UPDATE p SET v = 'b'")
    mirrored.poll()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("UPDATE p SET v = 'c'")
        connection.commit()
    shutil.copyfile(other, file)
    mirrored.poll()
    assert mirrored.entries() == {"1": "c"}
    assert mirrored.poll() == 0
    mirrored.stop()


def test_an_unchanged_table_is_not_stored_again(postgresql: DatabaseScene, tmp_path: Path) -> None:
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 100) g")
    mirrored = MirroredTable(postgresql, tmp_path)
    assert [mirrored.poll() for _ in range(3)] == [100, 0, 0]
    postgresql.do("UPDATE p SET v = 'b' WHERE id = 7")
    assert [mirrored.poll() for _ in range(3)] == [1, 0, 0]
    mirrored.stop()


def test_a_rejection_ends_with_its_row_or_with_the_fault(postgresql: DatabaseScene, tmp_path: Path) -> None:
    postgresql.do("INSERT INTO p VALUES (1, '', now()), (2, '', now()), (3, '', now()), (4, '4', now())")
    mirrored = MirroredTable(postgresql, tmp_path, entry=EntrySpec(key="{v}", value="{id}"))
    mirrored.poll()
    assert mirrored.rejected() == ["id=1", "id=2", "id=3"]
    mirrored.stop()
    mirrored.start()
    postgresql.do(
        "UPDATE p SET v = '1' WHERE id = 1", "UPDATE p SET at = now() WHERE id = 2", "DELETE FROM p WHERE id = 3"
    )
    mirrored.poll()
    assert mirrored.rejected() == ["id=2", "id=3"]
    mirrored.at += 3600
    mirrored.poll()
    assert mirrored.rejected() == ["id=2"]
    postgresql.do("UPDATE p SET v = '' WHERE id = 4")
    mirrored.poll()
    assert mirrored.rejected() == ["id=2", "id=4"]
    assert mirrored.entries() == {"1": "1", "4": "4"}  # a rejected row keeps its entry
    mirrored.stop()
