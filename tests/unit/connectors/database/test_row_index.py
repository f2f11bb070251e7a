"""The row index is used only with the reading that it holds, and never stops a reading."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from connectors.database.changes.row_index import RowIndex

_OPENED: list[RowIndex] = []


@pytest.fixture(autouse=True)
def _closed_indexes() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


class _Scene:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports: list[str] = []
        self.index = self.open()

    def open(self) -> RowIndex:
        self.index = RowIndex(lambda: self.path, self.reports.append)
        _OPENED.append(self.index)
        return self.index

    def whole(self, reading: str, **rows: bytes) -> None:
        self.index.begin_whole("d")
        self.index.add_listed(*_columns(rows))
        self.index.end_whole(reading)

    def new(self, **rows: bytes) -> list[bool]:
        return self.index.select_new(*_columns(rows)).to_list()


def _columns(rows: dict[str, bytes]) -> tuple[pl.Series, pl.Series]:
    return pl.Series("position", list(rows), dtype=pl.String), pl.Series("hash", list(rows.values()), dtype=pl.Binary)


def test_rows_are_known_when_the_cursor_of_their_reading_is_durable(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "rows.db")
    scene.whole("r1", a=b"1", b=b"2")
    scene.index.close()
    scene.open().begin("r1", "d")
    assert scene.new(a=b"1", b=b"3", c=b"1") == [False, True, True]
    scene.index.add_changes(*_columns({"b": b"3"}))
    scene.index.end_changes("r2", ["a"])
    scene.open().begin("r2", "d")
    assert scene.new(a=b"1", b=b"3") == [True, False]
    assert not scene.reports


def test_rows_of_a_reading_that_did_not_become_durable_are_unknown(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "rows.db")
    scene.whole("r1", a=b"1", b=b"2")
    scene.index.begin("r1", "d")
    scene.index.add_changes(*_columns({"b": b"3"}))
    scene.index.end_changes("r2")
    scene.open().begin("r1", "d")
    assert scene.new(a=b"1", b=b"2") == [False, True]


def test_another_reading_or_definition_makes_it_invalid_for_ever(tmp_path: Path) -> None:
    for reading, definition in (("r7", "d"), ("r1", "other")):
        scene = _Scene(tmp_path / f"{reading}.db")
        scene.whole("r1", a=b"1")
        scene.index.begin(reading, definition)
        assert not scene.index.is_valid
        scene.index.begin("r1", "d")
        assert not scene.index.is_valid
        assert scene.new(a=b"1") == [True]


def test_a_repeated_position_makes_it_unusable(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "rows.db")
    scene.index.begin_whole("d")
    scene.index.add_listed(*_columns({"a": b"1"}))
    scene.index.add_listed(*_columns({"a": b"2"}))
    scene.index.end_whole("r1")
    scene.index.begin("r1", "d")
    assert not scene.index.is_valid


def test_missing_positions_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "rows.db")
    scene.whole("r1", a=b"1", b=b"2", c=b"3")
    scene.index.begin("r1", "d")
    for most, expected in ((2, ["a", "c"]), (1, None)):
        scene.index.begin_list()
        scene.index.add_listed(pl.Series("position", ["b"]))
        assert scene.index.missing(most) == expected


def test_a_damaged_or_foreign_file_is_replaced(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "rows.db")
    scene.path.write_bytes(b"no database" * 1000)
    scene.index.begin("r1", "d")
    assert not scene.index.is_valid
    assert "rows.db can't be used" in scene.reports[0]
    foreign = sqlite3.connect(scene.path)
    foreign.execute("CREATE TABLE content (other)")
    foreign.close()
    scene.index.begin("r1", "d")
    scene.whole("r2", a=b"1")
    scene.open().begin("r2", "d")
    assert scene.new(a=b"1") == [False]


def test_a_folder_that_can_not_be_written_stops_nothing(tmp_path: Path) -> None:
    scene = _Scene(tmp_path / "missing" / "rows.db")
    scene.whole("r1", a=b"1")
    scene.index.begin("r1", "d")
    assert scene.new(a=b"1") == [True]
    assert scene.reports
