"""Random whole readings with ``deletes: remove``: a rejected record keeps its entry, whatever else happens to it.

A reading in which a field is renamed changes nothing, and the reading after it is compared with the one before it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingestd.core.address import SinkAddress
from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.mapping.conversion import ValueRules
from ingestd.core.record import Reject
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Row, Script, ScriptedConnector

_SINK = SinkAddress(workspace="w", by="label", name="s")
_MINIMUMS = ("0", "2")
"""The mappings: with the second one, the value 1 is rejected, too."""
_ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "a", "b", "c", ""]), st.sampled_from("123123?!")), max_size=5
)
_STEPS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("read"), _ROWS),
    st.tuples(st.just("read"), _ROWS),
    st.tuples(st.sampled_from(["rename key", "rename value"]), _ROWS.filter(bool)),
    st.tuples(st.sampled_from(["map", "restart", "approve"]), st.just([])),
)


class _Scene:
    """A partition, its mirror, and the entries that are expected."""

    def __init__(self, folder: Path, *, batch_rows: int, guard: Guard) -> None:
        self._path = folder / "state.db"
        self._guard = guard
        self._minimum = 0
        self._script = Script(deletes="remove", batch_rows=batch_rows)
        self._rows: list[tuple[str, str]] = []
        self.expected: dict[str, str] = {}
        self._is_renamed = False
        self.start()

    def start(self) -> None:
        self.mirror = SqliteMirror.open(self._path)
        self.mirror.intake.activate(["pipe"])
        rules = ValueRules(minimum=_MINIMUMS[self._minimum])
        self._reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(self._script),
            mapping=Mapping([EntrySpec(key="{k}", value="{v}", rules=rules)]), sink=_SINK, mirror=self.mirror.intake,
            emit=lambda _: None, guard=self._guard,
        )  # fmt: skip

    def do(self, action: str, rows: list[tuple[str, str]]) -> None:
        if action == "read":
            self._rows = rows
            readable: list[Row] = [{"k": key, "v": value} for key, value in rows if value != "!"]
            unread = [
                Reject(position=100 + at, reason="It can't be read.", field="v", record={"k": key})
                for at, (key, value) in enumerate(rows)
                if value == "!"
            ]
            self._script.write("p", readable, rejects=tuple(unread))
        elif action.startswith("rename"):
            names = ("key", "v") if action == "rename key" else ("k", "value")
            self._script.write("p", [dict(zip(names, row, strict=True)) for row in rows])
        elif action != "approve":
            self.mirror.close()
            self._minimum = 1 - self._minimum if action == "map" else self._minimum
            self.start()
        if action == "approve":
            self._approve()
        elif self._script.contents:
            rejected = self._reader.read_pass().rejected
            self._is_renamed = (self._is_renamed and action != "read") or action.startswith("rename")
            assert bool(rejected) == self._is_renamed
            if not rejected and not self.mirror.status.held_runs():
                self.expected = self._wanted()

    def _approve(self) -> None:
        for held in self.mirror.status.held_runs():
            try:
                self.mirror.intake.approve(held.run)
            except RunNotHeld:  # the mapping was changed since
                continue
            self.expected = self._wanted()

    def _wanted(self) -> dict[str, str]:
        good = {
            key: value for key, value in self._rows if key and value.isdigit() and value >= _MINIMUMS[self._minimum]
        }
        named = {key for key, _ in self._rows}
        before = self.expected
        kept = before if "" in named else {key: value for key, value in before.items() if key in named}
        return kept | good

    def entries(self) -> dict[str, str]:
        with closing(sqlite3.connect(self._path)) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed"))


_REPEATED = [("read", [("a", "1"), ("a", "?")]), ("read", [("a", "?")]), ("read", [("b", "1")])]
"""A rejected record names the entry of a good one, which then goes."""


@example(steps=_REPEATED, batch_rows=1, commit=1, unsorted=50_000, is_guarded=False)
@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(_STEPS, min_size=4, max_size=12),
    batch_rows=st.integers(1, 3),
    commit=st.integers(1, 4),
    unsorted=st.sampled_from([1, 50_000]),
    is_guarded=st.booleans(),
)
def test_a_rejected_record_keeps_its_entry(
    steps: list[tuple[str, list[tuple[str, str]]]], batch_rows: int, commit: int, unsorted: int, is_guarded: bool
) -> None:
    guard = Guard(removed_percent=40, minimum=2) if is_guarded else Guard()
    with (
        TemporaryDirectory() as folder,
        patch("ingestd.intake.run._ENTRIES_IN_COMMIT", commit),
        patch("ingestd.intake.run._ENTRIES_UNSORTED", unsorted),
    ):
        scene = _Scene(Path(folder), batch_rows=batch_rows, guard=guard)
        for action, rows in steps:
            scene.do(action, rows)
            assert scene.entries() == scene.expected
        scene.mirror.close()
