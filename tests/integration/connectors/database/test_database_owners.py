"""The owner of a database is not disturbed by a reading, and what it does to the database is a sentence."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.sdk import SourceBroken, SourceUnavailable

TESTS = Path(__file__).parents[4]


def read(connector: Any) -> list[Any]:
    (partition,) = connector.partitions()
    return list(connector.read(partition, None))


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_an_owner_with_a_busy_timeout_of_a_second_writes_during_a_slow_pass(sqlite: Any, journal: str) -> None:
    sqlite.do(f"PRAGMA journal_mode = {journal}")
    sqlite.do("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT)")
    sqlite.do(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO p SELECT i, hex(i) FROM n"
    )
    owner = sqlite3.connect(sqlite.base / "pdm.db", timeout=1.0, isolation_level=None)
    connector = sqlite.connector(table="p", batch_rows=1000)
    (partition,) = connector.partitions()
    values = []
    for number, batch in enumerate(connector.read(partition, None)):  # the owner writes between any two batches
        owner.execute("UPDATE p SET v = ? WHERE id > 10000", (f"new {number}",))
        values += batch.records["v"].to_list()
    assert len(values) == 20000
    assert not any(value.startswith("new") for value in values)  # one state of the file, the earlier one
    owner.close()


def test_a_file_that_its_owner_keeps_locked_is_unavailable(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (id INTEGER)")
    sqlite.do("BEGIN EXCLUSIVE")
    with pytest.raises(SourceUnavailable, match=r"writes to it for longer than 0\.2 seconds \(lock_timeout_seconds\)"):
        read(sqlite.connector(table="p", lock_timeout_seconds=0.2))
    sqlite.do("COMMIT")


def test_a_file_larger_than_the_spool_is_broken_with_the_remedy_and_is_read_in_wal_mode(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (v TEXT)")
    sqlite.do("INSERT INTO p VALUES (hex(zeroblob(100000)))")
    with pytest.raises(SourceBroken, match=r"more than spool_bytes \(50000\).*journal_mode = WAL"):
        read(sqlite.connector(table="p", spool_bytes=50_000))
    sqlite.do("PRAGMA journal_mode = WAL")
    assert len(read(sqlite.connector(table="p", spool_bytes=50_000))) == 1


def test_a_hot_journal_is_a_sentence_with_the_remedy_and_is_left_as_it_is(sqlite: Any) -> None:
    sqlite.do("CREATE TABLE p (v TEXT)")
    sqlite.do("PRAGMA cache_size = 1")
    sqlite.do("BEGIN")
    sqlite.do("INSERT INTO p SELECT hex(zeroblob(5000)) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8))")
    folder = sqlite.base / "crashed"  # the files as a crash in the middle of the write would have left them
    folder.mkdir()
    for name in ("pdm.db", "pdm.db-journal"):
        shutil.copyfile(sqlite.base / name, folder / name)
    sqlite.do("ROLLBACK")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(SourceBroken, match=r"left in the middle of a write: pdm\.db-journal.*Open the file once"):
        read(sqlite.connector(url="sqlite:///crashed/pdm.db", table="p"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_wal_in_a_folder_that_is_read_only_is_a_sentence_with_the_remedy(open_folder: Path) -> None:
    connection = sqlite3.connect(open_folder / "pdm.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE p (v TEXT)")
    connection.close()
    (open_folder / "pdm.db").chmod(0o644)
    open_folder.chmod(0o555)
    script = (
        "from connectors.database import DatabaseConnector, DatabaseOptions\n"
        "from ingestd.sdk import SourceContext\n"
        "from pathlib import Path\n"
        "import connectors.database.sqlite, os, sys  # now, because the other user may not read the packages\n"
        "options = DatabaseOptions.model_validate({'url': 'sqlite:///pdm.db', 'table': 'p'})\n"
        "source = DatabaseConnector(options, SourceContext(pipeline='t', base=Path(sys.argv[1]), now=lambda: 0.0))\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "print([step.sentence for step in source.verify()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(open_folder)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert "is in WAL mode, and ingestd may not write to its folder" in done.stdout, done.stderr
    assert "journal_mode = DELETE" in done.stdout
