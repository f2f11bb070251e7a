from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workspaced.storage.statements import load_statements


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package named ``variant_files``."""
    folder = tmp_path / "variant_files"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "variant_files", raising=False)
    return folder


def test_a_statement_is_the_same_everywhere_unless_a_variant_says_otherwise(package: Path) -> None:
    (package / "q.sql").write_text("-- what\n\n-- name: one\n-- why\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    (package / "q.postgres.sql").write_text("-- name: two\nSELECT 2::bigint\n\n-- hold: two\nFOR UPDATE\n")
    found = load_statements("variant_files", "q.sql")
    assert list(found) == ["one", "two"]
    assert (found["one"], found["one"].postgres, found["one"].locking) == ("-- why\nSELECT 1",) * 3
    assert (found["two"], found["two"].postgres) == ("SELECT 2", "SELECT 2::bigint")
    assert found["two"].locking == "SELECT 2::bigint\nFOR UPDATE"


def test_a_variant_of_nothing_is_a_mistake(package: Path) -> None:
    (package / "q.sql").write_text("-- name: one\nSELECT 1\n")
    (package / "q.postgres.sql").write_text("-- hold: onne\nFOR UPDATE\n")
    with pytest.raises(ValueError, match=r"q\.postgres\.sql of variant_files names onne"):
        load_statements("variant_files", "q.sql")


def test_parts_and_alternatives_make_statements_of_one_text(package: Path) -> None:
    (package / "q.sql").write_text(
        "-- name: columns\na, b\n\n-- name: by_asc\nSELECT {columns} FROM t WHERE a {>|<} :after ORDER BY a{| DESC}\n"
    )
    assert load_statements("variant_files", "q.sql") == {
        "by_asc": "SELECT a, b FROM t WHERE a > :after ORDER BY a",
        "by_desc": "SELECT a, b FROM t WHERE a < :after ORDER BY a DESC",
    }
