"""The how-to guides: their configurations and commands, run in the order of the page, print what the page shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import openpyxl
import psycopg
import pytest

from tests.support.executed_page import blocks, run_page, shown_lines
from tests.support.postgres_databases import databases
from tests.support.workspaced_process import WorkspaceService, new_key

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
NOT_RUN = {"rolling-upgrade", "three-machines", "troubleshooting"}
"""Pages with commands for running systems; `test_shown_commands` and tests of their own check these commands."""
EXECUTED = sorted(path.stem for path in GUIDES.glob("*.md") if path.stem not in NOT_RUN)


@dataclass(frozen=True, slots=True)
class Tutorial:
    """What a reader of a guide has from the tutorial."""

    data: Path
    url: str
    key: str


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    data = tmp_path_factory.mktemp("tutorial") / "service"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as client:
        client.post("/v1/workspace", json={"label": "Rover"}).raise_for_status()
        yield Tutorial(data, service.url, key)


def write_workbook(folder: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Masses"
    for row in (["Mass budget"], [], ["part_number", "mass_kg"], ["00417", 0.10], ["01523", 2]):
        sheet.append(row)
    (folder / "share").mkdir()
    book.save(folder / "share" / "mass-budget.xlsx")


@contextmanager
def pdm_database() -> Iterator[str]:
    """Yield the address of a PostgreSQL database with the table of the guide to PDM databases."""
    with databases() as server, server.empty() as url, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE part (number text PRIMARY KEY, revision text, mass_kg numeric)")
        connection.execute("INSERT INTO part VALUES ('00417', 'B', 0.10), ('01523', 'A', 2)")
        connection.commit()
        yield url


@pytest.mark.parametrize("guide", EXECUTED)
def test_the_commands_of_a_guide_print_what_it_shows(tutorial: Tutorial, guide: str, tmp_path: Path) -> None:
    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8").replace("http://127.0.0.1:8400", tutorial.url)
    (tmp_path / "service").symlink_to(tutorial.data)
    write_workbook(tmp_path)
    with pdm_database() if "PDM_URL" in text else nullcontext("") as url:
        output = run_page(text, tmp_path, {"INGESTD_API_KEY": tutorial.key, "PDM_URL": url})
    shown = shown_lines(text)
    assert shown
    assert [line for line in shown if line not in output] == [], output


def test_each_guide_has_a_configuration_and_commands() -> None:
    assert len(EXECUTED) >= 8
    for guide in EXECUTED:
        text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
        assert blocks(text, "yaml"), guide
        assert blocks(text, "sh"), guide
