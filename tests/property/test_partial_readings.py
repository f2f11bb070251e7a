"""Whole, partial and complete partial readings of a random table: after a complete one the mirror holds the table's values.

Rows share names, and a name is the key of an entry. Rows are rejected by the mapping and by the source, with a known name and
without one. Readings fail in the middle, and the daemon restarts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.mapping.conversion import ValueRules
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Connector, Cursor, Partition, Reject, SourceContext, SourceUnavailable

_SINK = SinkAddress(workspace="Bench", by="label", name="Rig")
_ROWS = st.integers(0, 2)
_NAMES = st.sampled_from(["A", "B", "A", "B", ""])
_VALUES = st.sampled_from("1212?!")
_BAD = {"?": "the mapping rejects it", "!": "the source can't read it"}
_STEPS = st.one_of(
    st.tuples(st.just("put"), _ROWS, _NAMES, _VALUES),
    st.tuples(st.just("move"), _ROWS, _ROWS),
    st.tuples(st.just("delete"), _ROWS),
    st.tuples(st.sampled_from(["changes", "changes", "sweep", "sweep", "whole", "restart"])),
    st.tuples(st.just("fail"), st.sampled_from(["changes", "sweep", "whole"])),
)


class _Table(Connector):
    """A table in memory. ``changed``: the rows that were written since the last durable reading."""

    def __init__(self, rows: dict[int, tuple[str, str]]) -> None:
        super().__init__(None, SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0))
        self.rows = rows
        self.kind = "changes"
        self.fails = False
        self.known: dict[int, tuple[str, str]] = {}
        self.readings: list[str] = []

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="p", deletes="remove")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002
        is_whole = cursor is None or self.kind == "whole"
        self.readings.append("whole" if is_whole else self.kind)
        chosen = sorted(row for row in self.rows if is_whole or self.known.get(row) != self.rows[row])
        removed = None if is_whole or self.kind == "changes" else sorted(self.known.keys() - self.rows.keys())
        for row in chosen:
            yield self._batch([row], partial=not is_whole)
        if self.fails:
            self.known = dict.fromkeys(self.known | self.rows, ("", ""))  # what was yielded is not known any more
            raise SourceUnavailable("The network is away.")
        gone = tuple(map(_position, removed)) if removed is not None else None
        yield self._batch([], partial=not is_whole, last=True, removed=gone)
        kept = {} if is_whole else {row: known for row, known in self.known.items() if row not in (removed or [])}
        self.known = kept | {row: self.rows[row] for row in chosen}

    def _batch(self, rows: list[int], **more: Any) -> Batch:
        found = [self.rows[row] for row in rows if self.rows[row][1] != "!"]
        unread = [row for row in rows if self.rows[row][1] == "!"]
        columns = {"name": [name for name, _ in found], "value": [value for _, value in found]}
        return Batch(
            records=pl.DataFrame(columns, schema={"name": pl.String, "value": pl.String}),
            positions=pl.Series("position", [_position(row) for row in rows if row not in unread], dtype=pl.String),
            rejects=tuple(
                Reject(position=_position(row), reason="No text.", field="value", record={"name": self.rows[row][0]})
                for row in unread
            ),
            cursor={"reading": len(self.readings)},
            header=True,
            **more,
        )


def _position(row: int) -> str:
    return f"id={row}"


class _Scene:
    def __init__(self, folder: Path, guard: Guard) -> None:
        self._path = folder / "state.db"
        self._guard = guard
        self.table = _Table({})
        self.start()

    def start(self) -> None:
        self.mirror = SqliteMirror.open(self._path)
        self.mirror.intake.activate(["pipe"])
        self._reader = Reader(
            pipeline="pipe",
            connector=self.table,
            mapping=Mapping([EntrySpec(key="{name}", value="{value}", rules=ValueRules(minimum="0"))]),
            sink=_SINK,
            mirror=self.mirror.intake,
            emit=lambda _: None,
            guard=self._guard,
        )

    def read(self, kind: str, *, fails: bool = False) -> None:
        self.table.kind, self.table.fails = kind, fails
        self._reader.read_pass()
        self.table.fails = False

    def entries(self) -> dict[str, str]:
        with closing(sqlite3.connect(self._path)) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed"))

    def change(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("put", row, name, value):
                self.table.rows[row] = (name, value)
            case ("move", row, to) if row in self.table.rows:
                self.table.rows[to] = self.table.rows.pop(row)
            case ("delete", row):
                self.table.rows.pop(row, None)
            case ("restart",):
                self.mirror.close()
                self.start()
            case ("fail", kind):
                self.read(kind, fails=True)
            case ("changes" | "sweep" | "whole" as kind,):
                self.read(kind)

    def check(self, step: tuple[Any, ...]) -> None:
        """Change the table or read it; a complete reading must have the table's values."""
        before = self.entries()
        self.change(step)
        if step[0] not in {"sweep", "whole"}:
            return
        rows = [row for _, row in sorted(self.table.rows.items())]
        found = self.entries()
        expected = {name: before[name] for name, value in rows if value in _BAD and name in before}
        expected |= {name: value for name, value in rows if name and value not in _BAD}
        if any(not name for name, _ in rows):  # a rejected row without a name may name any entry
            assert expected.items() <= found.items() <= (before | expected).items()
            assert step[0] == "sweep" or found == before | expected
        else:
            assert found == expected


_TAKEN_OVER: list[tuple[Any, ...]] = [
    ("put", 0, "A", "1"),
    ("sweep",),
    ("put", 1, "A", "2"),
    ("changes",),
    ("delete", 1),
    ("sweep",),
]
"""The entry of row 0 comes from row 1 for a while."""


_SHARED: list[tuple[Any, ...]] = [("put", 1, "A", "1"), ("whole",), ("put", 0, "A", "2"), ("sweep",)]
"""The sweep reads a row with the name of a later one, which wins."""


@example(steps=_SHARED, is_guarded=False)
@example(steps=_SHARED, is_guarded=True)
@example(steps=_TAKEN_OVER, is_guarded=False)
@example(steps=_TAKEN_OVER, is_guarded=True)
@given(steps=st.lists(_STEPS, min_size=15, max_size=30), is_guarded=st.booleans())
def test_a_complete_partial_reading_removes_what_no_row_produces(
    steps: list[tuple[Any, ...]], is_guarded: bool
) -> None:
    guard = Guard(removed_percent=50, minimum=1000) if is_guarded else Guard()
    with TemporaryDirectory() as folder:
        scene = _Scene(Path(folder), guard)
        for step in steps:
            scene.check(step)
        scene.mirror.close()


def test_a_removed_row_needs_no_whole_reading(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, Guard())
    scene.table.rows = {1: ("A", "1"), 2: ("B", "1"), 3: ("C", "1")}
    scene.read("whole")
    del scene.table.rows[2]
    scene.table.rows[3] = ("D", "1")
    scene.read("sweep")
    assert scene.entries() == {"A": "1", "D": "1"}
    assert scene.table.readings == ["whole", "sweep"]
    scene.mirror.close()


def test_the_guard_holds_what_a_complete_partial_reading_would_remove(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, Guard(removed_percent=50, minimum=2))
    scene.table.rows = {1: ("A", "1"), 2: ("B", "1"), 3: ("C", "1")}
    scene.read("whole")
    scene.table.rows = {1: ("A", "2")}
    scene.read("sweep")
    assert scene.table.readings == ["whole", "sweep", "whole"]
    assert scene.entries() == {"A": "1", "B": "1", "C": "1"}
    (held,) = scene.mirror.status.held_runs()
    assert held.removed == 2
    scene.table.rows = {1: ("A", "3")}
    scene.read("changes")  # a partial reading after a held run does not replace it
    assert scene.entries() == {"A": "1", "B": "1", "C": "1"}
    (held,) = scene.mirror.status.held_runs()
    scene.mirror.intake.approve(held.run)
    assert scene.entries() == {"A": "3"}
    scene.mirror.close()
