"""docs/guarantees.md and docs/versioning.md: each promise names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("guarantees.md", "versioning.md")]
ROWS = [row for page in PAGES for row in re.findall(r"^\| (.+) \| (.*`tests/.+) \|$", page, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=["guarantees", "versions"])
def test_each_row_of_a_page_names_a_test(page: str) -> None:
    table = page.partition("| shown by |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(table) > 10
    assert [row for row in table if "`tests/" not in row] == []


@pytest.mark.parametrize(("promise", "shown_by"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_promise_names_an_existing_test(promise: str, shown_by: str) -> None:
    named = re.findall(r"`([\w/.]+)::(\w+)`", shown_by)
    assert named, promise
    for path, test in named:
        assert re.search(rf"^\s*(async )?def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test
