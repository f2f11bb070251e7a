"""The private folders of connectors beside the state file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ingestd.daemon.kept_files import kept_folder, remove_unused
from ingestd.sdk import SourceContext


def _context(state: Path, pipeline: str) -> SourceContext:
    return SourceContext(pipeline=pipeline, base=state.parent, now=lambda: 0.0, kept=kept_folder(state, pipeline))


@pytest.mark.parametrize("pipeline", ["parts", "..", ".", "a/b", "a b", "Prüfstand"])
def test_a_kept_file_is_private_and_below_the_folder_of_the_state_file(tmp_path: Path, pipeline: str) -> None:
    path = _context(tmp_path / "ingestd.db", pipeline).keep("rows.db")
    assert path is not None
    assert path.resolve().parent.parent == tmp_path / "ingestd.db.kept"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_pipelines_have_two_folders(tmp_path: Path) -> None:
    names = ["a", "a.", "a/", "a%2F", "A b", "a b"]
    assert len({kept_folder(tmp_path / "state.db", name) for name in names}) == len(names)


def test_a_kept_file_keeps_its_content_and_that_of_a_removed_pipeline_goes(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    for name in ("parts", "orders"):
        path = _context(state, name).keep("rows.db")
        assert path is not None
        path.write_text(name)
    remove_unused(state, ["parts"])
    kept = _context(state, "parts").keep("rows.db")
    assert kept is not None
    assert kept.read_text() == "parts"
    assert not kept_folder(state, "orders").exists()
    remove_unused(tmp_path / "other.db", [])


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    assert SourceContext(pipeline="p", base=tmp_path, now=lambda: 0.0).keep("rows.db") is None
