"""Readings of changes and whole ones alternate: the mirror holds the table's values after each reading."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Partition, Rejected, SourceContext
from ingestd.sdk.testing.settlements import settlement
from tests.support.database_scene import DatabaseScene

SINK = SinkAddress(workspace="Bench", by="label", name="Rig")


class MirroredTable:
    """The table, the connector, the intake and the state file. ``at`` is the time of the connector, in seconds."""

    def __init__(self, scene: DatabaseScene, folder: Path, **options: Any) -> None:
        self.at = 0.0
        self._scene = scene
        self._state = folder / "state.db"
        self._options = {"url": scene.url, "table": "p", "key": "id", "mode": "changes", "deletes": "remove"} | options
        self.start()

    def start(self) -> None:
        self._mirror = SqliteMirror.open(self._state)
        self._mirror.intake.activate(["pipe"])
        options = DatabaseOptions.model_validate(self._options)
        self.connector = DatabaseConnector(
            options, SourceContext(pipeline="pipe", base=self._scene.base, now=lambda: self.at)
        )
        self._reader = Reader(
            pipeline="pipe",
            connector=self.connector,
            mapping=Mapping([EntrySpec(key="{id}", value="{v}")]),
            sink=SINK,
            mirror=self._mirror.intake,
            emit=lambda _: None,
        )

    def stop(self) -> None:
        self.connector.close()
        self._mirror.close()

    def poll(self) -> int:
        """Read once; the number of records."""
        report = self._reader.read_pass()
        assert (report.away, report.broken, report.rejected) == ("", "", ())
        return sum(run.records for run in report.read)

    def entries(self) -> dict[str, str]:
        with closing(sqlite3.connect(self._state)) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed"))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("kind", "options"),
    [("postgresql", {}), ("postgresql", {"table": "w", "cursor": "at"}), ("mariadb", {"cursor": "at"})],
)
def test_the_mirror_follows_the_table(
    kind: str, options: dict[str, Any], seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    scene: DatabaseScene = request.getfixturevalue(kind)
    rng = random.Random(seed)
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


def test_an_unchanged_table_is_not_stored_again(postgresql: DatabaseScene, tmp_path: Path) -> None:
    postgresql.do("INSERT INTO p SELECT g, 'a', now() FROM generate_series(1, 100) g")
    mirrored = MirroredTable(postgresql, tmp_path)
    assert [mirrored.poll() for _ in range(3)] == [100, 0, 0]
    postgresql.do("UPDATE p SET v = 'b' WHERE id = 7")
    assert [mirrored.poll() for _ in range(3)] == [1, 0, 0]
    mirrored.stop()


def test_a_corrected_row_replaces_its_rejection(postgresql: DatabaseScene, tmp_path: Path) -> None:
    postgresql.do("INSERT INTO p VALUES (1, 'a', now()), (2, 'a', now())")
    mirrored = MirroredTable(postgresql, tmp_path)
    partition = Partition(name="p")
    *_, whole = mirrored.connector.read(partition, None)
    rejected = Rejected(reference="7-0000", subject="record", position="id=2", reason="It is no number.")
    mirrored.connector.settled(partition, whole.cursor, settlement(rejects=[rejected]))
    postgresql.do("UPDATE p SET v = 'b' WHERE id = 1")
    *_, other = mirrored.connector.read(partition, whole.cursor)
    assert (other.partial, other.resolves) == (True, ())
    postgresql.do("UPDATE p SET v = 'b' WHERE id = 2")
    *_, same = mirrored.connector.read(partition, other.cursor)
    assert same.resolves == ("7-0000",)
    mirrored.stop()
