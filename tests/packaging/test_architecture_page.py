"""ARCHITECTURE.md and the decision records name only existing files, and keep their form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
WORDS_AT_MOST = 1_500
WORDS_OF_A_RECORD = 600
SECTIONS = ["Status", "Context", "Decision", "Consequences", "Measured figures"]
TOP_LEVEL = {path.name for path in ROOT.iterdir()}
WITH_REFERENCES = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "bench",
    "connectors",
    "docs",
    "ingestd",
    "workspaced",
)


def named_paths(text: str) -> set[str]:
    """Return the repository's paths in backticks: those that begin with an entry of its top level."""
    return {name for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)*/?)`", text) if name.partition("/")[0] in TOP_LEVEL}


def linked_paths(text: str) -> set[str]:
    """Return the targets of relative links without their anchors."""
    return {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target} - {""}


@pytest.mark.parametrize("page", [ARCHITECTURE, *RECORDS], ids=lambda page: page.name)
def test_every_named_path_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in sorted(named_paths(text)) if not (ROOT / name).exists()] == []
    assert [name for name in sorted(linked_paths(text)) if not (page.parent / name).exists()] == []
    assert named_paths(text), "the page names no path: the pattern of this test is wrong"


def test_the_architecture_page_is_short() -> None:
    assert len(ARCHITECTURE.read_text(encoding="utf-8").split()) <= WORDS_AT_MOST


def test_every_record_has_its_sections_and_a_line_in_the_index() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in RECORDS if f"({path.name})" not in index] == []
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# (\d{4})\. (.+)$", text, re.MULTILINE)
        assert title is not None, path.name
        assert title[1] == path.name[:4]
        assert f"| {title[2]} |" in index, path.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS, path.name


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_is_short_holds_today_and_has_a_figure_or_a_reason(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert len(re.findall(r"\S*\w\S*", text)) <= WORDS_OF_A_RECORD
    assert "## Status\n\nAccepted. Code: " in text, "a decision that no longer holds loses its record"
    figures = text.partition("## Measured figures\n\n")[2]
    assert re.search(r"[Rr]eason", figures) if figures.startswith("None") else re.search(r"\d", figures)


def test_every_reference_to_a_record_names_an_existing_one() -> None:
    numbers = {record.name[:4] for record in RECORDS}
    names = {record.name for record in RECORDS}
    paths = [found for top in WITH_REFERENCES for found in [ROOT / top, *(ROOT / top).rglob("*")]]
    for path in (found for found in paths if found.suffix in {".md", ".py", ".sql"}):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"adr/(\d{4}-[\w-]+\.md)", text)) <= names, path
        assert set(re.findall(r"[Dd]ecision record (\d{4})\b", text)) <= numbers, path
