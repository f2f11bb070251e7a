from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ingestd.process.statements import load_statements


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package named ``statement_files``."""
    folder = tmp_path / "statement_files"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "statement_files", raising=False)
    return folder


def test_statements_are_found_by_name(package: Path) -> None:
    (package / "q.sql").write_text("-- what\n\n-- name: one\n-- why\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    assert load_statements("statement_files", "q.sql") == {"one": "-- why\nSELECT 1", "two": "SELECT 2"}


def test_a_repeated_name_is_a_mistake(package: Path) -> None:
    (package / "q.sql").write_text("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n")
    with pytest.raises(ValueError, match=r"q\.sql names 'one' twice"):
        load_statements("statement_files", "q.sql")
