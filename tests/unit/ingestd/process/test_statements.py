from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ingestd.process.statements import load_statements


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package named ``spoken``."""
    folder = tmp_path / "spoken"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "spoken", raising=False)
    return folder


def test_a_statement_is_the_same_for_all_databases_unless_it_has_a_variant(package: Path) -> None:
    (package / "q.sql").write_text("-- what\n\n-- name: one\n-- why\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    (package / "q.postgres.sql").write_text("-- name: two\nSELECT 2::bigint\n\n-- hold: two\nFOR UPDATE\n")
    found = load_statements("spoken", "q.sql")
    assert list(found) == ["one", "two"]
    assert (found["one"], found["one"].postgres, found["one"].holding) == ("-- why\nSELECT 1",) * 3
    assert (found["two"], found["two"].postgres) == ("SELECT 2", "SELECT 2::bigint")
    assert found["two"].holding == "SELECT 2::bigint\nFOR UPDATE"


def test_a_repeated_name_is_a_mistake(package: Path) -> None:
    (package / "q.sql").write_text("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n")
    with pytest.raises(ValueError, match=r"q\.sql names 'one' twice"):
        load_statements("spoken", "q.sql")


def test_a_variant_of_an_unknown_statement_is_a_mistake(package: Path) -> None:
    (package / "q.sql").write_text("-- name: one\nSELECT 1\n")
    (package / "q.postgres.sql").write_text("-- hold: onne\nFOR UPDATE\n")
    with pytest.raises(ValueError, match=r"q\.postgres\.sql of spoken names onne"):
        load_statements("spoken", "q.sql")
