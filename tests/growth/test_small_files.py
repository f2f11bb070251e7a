"""The transactions and flushes of many small files: a transaction and a folder's flush are for all of them, not for each."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingestd.mirror.sqlite import SqliteMirror
from tests.support.file_flow import FileFlow

FILES = 20


class _CommitCounter(sqlite3.Connection):
    """Counts the transactions that have written something."""

    counts: Counter[str]
    _changes = 0

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE":
            self._changes = self.total_changes
        elif sql == "COMMIT" and self.total_changes > self._changes:
            self.counts["commits"] += 1
        return super().execute(sql, *parameters)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the commits of the reader's thread, and what is flushed."""
    counts: Counter[str] = Counter()
    opened, fsync = SqliteMirror.open, os.fsync
    factory = type("Counting", (_CommitCounter,), {"counts": counts})
    monkeypatch.setattr(SqliteMirror, "open", lambda path, **more: opened(path, **more, factory=factory))

    def counted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        counts["folders flushed" if path.is_dir() else "files flushed"] += 1
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    return counts


def work_of(folder: Path, files: int, counts: Counter[str], *, together: bool) -> dict[str, int]:
    """Return the work of reading and archiving this number of files; a clock that runs fast stores each of them alone."""
    folder.mkdir()
    flow = FileFlow(folder)
    ticks = iter(range(10**9))
    flow.reader._clock = (lambda: 0.0) if together else (lambda: float(next(ticks)))
    flow.write("first.csv", "part,mass\nfirst,1\n")
    flow.pass_once()  # creates the sink, and the folder of the archive
    for number in range(files):
        flow.write(f"f{number:03}.csv", "part,mass\n" + "".join(f"P{number}.{row},{row}\n" for row in range(10)))
    counts.clear()
    flow.reader.read_pass()
    read = counts["commits"]
    flow.pass_once()  # nothing is new
    assert len(flow.held) == 10 * files + 1
    assert len(flow.files(flow.done)) == 2 * (files + 1)
    flow.close()
    return {
        "commits of the reading": read,
        "folders flushed": counts["folders flushed"],
        "files flushed": counts["files flushed"],
    }


def test_transactions_and_flushed_folders_do_not_grow_with_the_files(tmp_path: Path, counts: Counter[str]) -> None:
    few = work_of(tmp_path / "few", FILES, counts, together=True)
    many = work_of(tmp_path / "many", 4 * FILES, counts, together=True)
    assert few.pop("files flushed") + 3 * FILES == many.pop("files flushed"), "each receipt is flushed once"
    assert few == many
    assert few["commits of the reading"] <= 3
    assert few["folders flushed"] <= 3


def test_a_file_that_is_read_alone_has_one_transaction(tmp_path: Path, counts: Counter[str]) -> None:
    few = work_of(tmp_path / "few", FILES, counts, together=False)
    many = work_of(tmp_path / "many", 4 * FILES, counts, together=False)
    added = many["commits of the reading"] - few["commits of the reading"]
    assert added == 3 * FILES, "one transaction for each file"
