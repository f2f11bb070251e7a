"""Reading connections live as long as the daemon."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.core.errors import MirrorCorrupt
from ingestd.mirror.sqlite.state_file.failures import ReadingConnection

STATEMENTS = 5_000
CPYTHON_KEEPS = 250
"""CPython removes dead references to cursors after each 200 of them."""


def references() -> int:
    return sum(type(one) is weakref.ref for one in gc.get_objects())


@pytest.mark.parametrize("call", ["execute", "executemany"])
def test_statements_leave_no_references_behind(call: str) -> None:
    with closing(sqlite3.connect(":memory:", factory=ReadingConnection)) as connection:
        connection.execute("CREATE TABLE t (a)")
        before = references()
        for number in range(STATEMENTS):
            if call == "execute":
                connection.execute("SELECT ?", (number,)).fetchone()
            else:
                connection.executemany("INSERT INTO t VALUES (?)", [(number,)])
        assert references() - before <= CPYTHON_KEEPS


def test_a_damaged_file_is_named_by_statements_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 30)
    with closing(sqlite3.connect(path, factory=ReadingConnection)) as connection:
        connection.path = path
        for call in (connection.execute, connection.cursor().execute):
            with pytest.raises(MirrorCorrupt, match=r"i\.db is damaged"):
                call("SELECT * FROM t")
