"""The state file: permissions, locks, and that a rejected file is unchanged."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingestd.core.errors import MirrorBusy, MirrorCorrupt, MirrorError, MirrorFull, MirrorNewer
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.state_file import connection as connection_module
from ingestd.mirror.sqlite.state_file.connection import StateFile
from tests.contract.mirror_deliverable import SINK
from tests.support.crashing_sqlite import CrashPoint, copy_database, crashing
from tests.support.daemon_process import ROOT
from tests.support.desired_entries import desire_all
from tests.support.memory_mirror import Desired

HOLDER = """
import signal, sys
from pathlib import Path
from ingestd.mirror.sqlite import SqliteMirror
mirror = SqliteMirror.open(Path(sys.argv[1]))
print("open", flush=True)
signal.pause()
"""


class ObservedStatements(CrashPoint):
    """Observes a state file before each statement of its first open, and copies what a killed process would leave."""

    def __init__(self, path: Path, copies: Path) -> None:
        super().__init__(at=0, each=True)
        self._path = path
        self._copies = copies
        self.copied: list[Path] = []
        self.sentences: set[str] = set()

    def count_statement(self, statement: str, *, is_inside: bool = False) -> None:
        super().count_statement(statement, is_inside=is_inside)
        try:
            SqliteMirror.observe(self._path).close()
        except MirrorError as error:
            self.sentences.add(str(error))
        self.copied.append(self._copies / str(self.count) / self._path.name)
        copy_database(self._path, self.copied[-1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "var" / "ingestd.db"


def filled(path: Path, count: int = 3) -> dict[str, Desired]:
    """Write a state file and close it cleanly; return its desired entries."""
    wanted: dict[str, Desired] = {f"K-{number}": (f"{number}.0", "scalar") for number in range(count)}
    mirror = SqliteMirror.open(path)
    desire_all(mirror, SINK, wanted)
    mirror.close()
    return wanted


def test_the_state_file_is_readable_by_its_owner_only(path: Path) -> None:
    before = os.umask(0)
    try:
        mirror = SqliteMirror.open(path)
        desire_all(mirror, SINK, {"a": ("1", "scalar")})
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        mirror.close()
    finally:
        os.umask(before)
    assert modes["ingestd.db"] == modes["ingestd.db-wal"] == modes["ingestd.db.lock"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_second_process_is_rejected_with_the_pid_of_the_first_until_that_ends(path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(MirrorBusy, match=f"in use by process {holder.pid}") as refused:
            SqliteMirror.open(path)
        assert (refused.value.pid, refused.value.path) == (holder.pid, str(path))
        observer = SqliteMirror.observe(path)
        assert observer.pending() == 0
        observer.close()
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    SqliteMirror.open(path).close()


def test_a_file_of_a_newer_version_is_rejected_by_every_function(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4711")
    before = path.read_bytes()
    for way_in in (SqliteMirror.open, SqliteMirror.observe):
        with pytest.raises(MirrorNewer, match="layout 4711"):
            way_in(path)
    assert path.read_bytes() == before


def test_the_tables_of_a_new_file_appear_together_for_observers_and_after_a_kill(path: Path, tmp_path: Path) -> None:
    observed = ObservedStatements(path, tmp_path / "killed")
    SqliteMirror.open(path, factory=crashing(observed)).close()
    assert observed.sentences == {f"{path} is empty; the next 'ingestd run' or 'ingestd sync' creates its tables"}
    # The tables are many statements, so most copies are from the middle of the transaction.
    assert len(observed.copied) > 50
    versions = set()
    for copy in observed.copied:
        with closing(sqlite3.connect(copy)) as connection:
            versions.add(connection.execute("PRAGMA user_version").fetchone()[0])
    assert len(versions) == 2, "a kill leaves either no layout or the newest one"
    for copy in (observed.copied[0], observed.copied[len(observed.copied) // 2], observed.copied[-1]):
        filled(copy)
        observer = SqliteMirror.observe(copy)
        assert observer.pending() == 3
        observer.close()


@pytest.mark.parametrize("content", [b"No database. " * 1000, b"No database"], ids=["long", "short"])
def test_a_file_that_is_no_database_is_rejected_and_unchanged(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(MirrorCorrupt, match="damaged"):
        SqliteMirror.open(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_reported_as_damage(path: Path) -> None:
    wanted = filled(path, 20_000)
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        size, table = (
            connection.execute(question).fetchone()[0]
            for question in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'")
        )
    start = (table - 1) * size
    path.write_bytes(content[:start] + b"\xff" * size + content[start + size :])
    mirror = SqliteMirror.open(path)
    try:
        with pytest.raises(MirrorCorrupt, match="start with a new state file"):
            desire_all(mirror, SINK, wanted | {"K-1": ("one", "text")})
    finally:
        mirror.close()


def test_a_database_of_another_program_is_rejected_and_unchanged(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    for way_in in (SqliteMirror.open, SqliteMirror.observe):
        with pytest.raises(MirrorCorrupt, match="not a state file of ingestd"):
            way_in(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("photos",)]
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_created_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MirrorError, match=r"can't be created: .* is not a folder"):
        SqliteMirror.open(tmp_path / "file" / "ingestd.db")


def test_a_rejected_file_can_be_opened_after_it_is_repaired(path: Path) -> None:
    """A rejected open leaves no lock."""
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 4711")
    with pytest.raises(MirrorNewer):
        SqliteMirror.open(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    mirror = SqliteMirror.open(path)
    assert mirror.status.pending() == 3
    mirror.close()


def test_observing_a_missing_file_fails_without_creating_it(path: Path) -> None:
    with pytest.raises(MirrorError, match="no state file"):
        SqliteMirror.observe(path)


class SmallDisk(sqlite3.Connection):
    """A database with a size limit, which behaves as a full disk."""

    full = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if self.full and sql == "BEGIN IMMEDIATE":
            (pages,) = super().execute("PRAGMA page_count").fetchone()
            super().execute(f"PRAGMA max_page_count = {pages}")
        return super().execute(sql, *parameters)


async def test_a_full_disk_loses_nothing_and_delivery_continues(path: Path) -> None:
    class Disk(SmallDisk):
        pass

    mirror = SqliteMirror.open(path, factory=Disk)
    try:
        desire_all(mirror, SINK, {"a": ("1", "scalar")})
        Disk.full = True
        with pytest.raises(MirrorFull, match="Free some space"):
            desire_all(mirror, SINK, {f"K-{number}": ("x" * 1000, "text") for number in range(500)})
        assert mirror.status.pending() == 1
        claim = await mirror.delivery.claim(1, max_items=10, max_bytes=10_000)
        assert claim is not None
        await mirror.delivery.acknowledge(claim)
        assert mirror.status.pending() == 0
    finally:
        mirror.close()


def test_a_file_that_another_file_replaced_is_neither_written_nor_read_until_it_is_back(
    path: Path, tmp_path: Path
) -> None:
    away, other = tmp_path / "away.db", tmp_path / "other.db"
    StateFile(other).close()
    state = StateFile(path)
    try:
        path.rename(away)
        for place in (lambda: None, lambda: other.rename(path)):
            place()
            with pytest.raises(MirrorFull, match="was moved, replaced or removed"), state.writing():
                pass
            with pytest.raises(MirrorFull, match="was moved, replaced or removed"):
                state.reader()
            assert "was moved" in state.unwritable
        away.rename(path)
        log = path.with_name(f"{path.name}-wal")
        log.rename(away)
        with pytest.raises(MirrorFull, match="with its log"), state.writing():
            pass
        away.rename(log)
        with state.writing() as connection:
            connection.execute("INSERT INTO pipeline (name) VALUES ('p')")
        assert state.unwritable == ""
    finally:
        state.close()


def test_a_folder_that_a_file_replaced_is_reported_until_it_is_back(tmp_path: Path) -> None:
    folder, away = tmp_path / "var", tmp_path / "away"
    state = StateFile(folder / "ingestd.db")
    try:
        folder.rename(away)
        folder.touch()
        for use in (state.writing, state.reading):
            with pytest.raises(MirrorFull, match="cannot be used at the moment: Not a directory"), use():
                pass
        folder.unlink()
        away.rename(folder)
        with state.writing():
            pass
    finally:
        state.close()


def later_migrations(monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    """Let the program have these migrations after its own."""
    own = connection_module.migrations()
    later = [(own[-1][0] + number, script) for number, script in enumerate(scripts, start=1)]
    monkeypatch.setattr(connection_module, "migrations", lambda: [*own, *later])


def test_a_file_of_an_older_version_gets_the_missing_migrations_in_order_and_keeps_its_content(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path)
    version = layout(path)
    later_migrations(monkeypatch, "ALTER TABLE sink ADD COLUMN more INTEGER;", "UPDATE sink SET more = 7;")
    with pytest.raises(MirrorError, match=r"written by an older ingestd .* updates it"):
        SqliteMirror.observe(path)
    for _ in range(2):
        mirror = SqliteMirror.open(path)
        assert mirror.status.pending() == 3
        mirror.close()
        assert layout(path) == version + 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT more FROM sink").fetchall() == [(7,)]


def test_a_migration_that_fails_leaves_the_file_unchanged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    version = layout(path)
    with monkeypatch.context() as patch:
        later_migrations(patch, "ALTER TABLE sink ADD COLUMN more INTEGER;", "UPDATE no_such_table SET more = 7;")
        with pytest.raises(MirrorError, match="no_such_table"):
            SqliteMirror.open(path)
    assert layout(path) == version
    mirror = SqliteMirror.open(path)
    assert mirror.status.pending() == 3
    mirror.close()


def layout(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
