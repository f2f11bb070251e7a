"""docs/guarantees.md: each promise names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE) if row[0] != "promise"]


def test_the_page_has_promises() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize(("promise", "shown_by"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_promise_names_an_existing_test(promise: str, shown_by: str) -> None:
    named = re.findall(r"`([\w/.]+)::(\w+)`", shown_by)
    assert named, promise
    for path, test in named:
        assert re.search(rf"^\s*(async )?def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test
