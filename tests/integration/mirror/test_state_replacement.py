"""The content of a state file is replaced as a whole, also if the process is killed while it does that."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.mirror.sqlite import StateFile

_CHILD = """
import sys
from pathlib import Path
from ingestd.mirror.sqlite import StateFile

state = StateFile(Path(sys.argv[1]))
while True:
    for other in sys.argv[2:]:
        state.replace_by(Path(other))
        print(other, flush=True)
"""


def make_state(path: Path, value: str, rows: int) -> Path:
    with closing(StateFile(path)) as state, state.writing() as connection:
        connection.executemany(
            "INSERT INTO staging (run, key, value, data_type, row_hash) VALUES (1, ?, ?, 'text', 1)",
            ((f"key {number}", value) for number in range(rows)),
        )
    return path


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_replacement_leaves_one_of_both_contents(tmp_path: Path, seed: int) -> None:
    sizes = {"old": 30_000, "new": 20_000}
    others = [make_state(tmp_path / f"{value}.db", value, rows) for value, rows in sizes.items()]
    path = make_state(tmp_path / "state.db", "old", sizes["old"])
    child = subprocess.Popen([sys.executable, "-c", _CHILD, path, *others], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.wait(timeout=random.Random(seed).uniform(0, 0.2))
    except subprocess.TimeoutExpired:
        child.kill()
    child.communicate()
    with closing(StateFile(path)) as state, closing(state.reader()) as reader:
        [(value, rows)] = reader.execute("SELECT value, count(*) FROM staging GROUP BY value").fetchall()
        assert sizes[value] == rows
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_replacement_is_visible_to_open_connections_and_keeps_the_lock(tmp_path: Path) -> None:
    other = make_state(tmp_path / "new.db", "new", 10)
    with closing(StateFile(make_state(tmp_path / "state.db", "old", 5))) as state, closing(state.reader()) as reader:
        state.replace_by(other)
        assert reader.execute("SELECT DISTINCT value FROM staging").fetchall() == [("new",)]
        with state.writing() as connection:
            connection.execute("DELETE FROM staging")
        assert reader.execute("SELECT count(*) FROM staging").fetchone() == (0,)
