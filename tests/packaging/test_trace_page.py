"""The pages on mappings and databases show what `ingestd trace` prints for the files and tables that they show."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.engineering_folder import Folder, OtherProgram, program_beside_document_server

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ |```).*\n)*)", re.MULTILINE)
VARYING = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+\+00:00|\+00:00| UTC)": "TIME",
    r"\b[0-9a-f]{64}\b": "SHA256",
    r"file\.owner .*": "file.owner",
}


def shown(page: str) -> dict[str, str]:
    """Return the output of each command in the section on `ingestd trace`."""
    section = (DOCS / page).read_text(encoding="utf-8").split("\n## Where a value came from\n")[1].split("\n## ")[0]
    return {found["command"]: found["output"] for found in COMMANDS.finditer(section)}


def without_varying(text: str) -> str:
    for pattern, name in VARYING.items():
        text = re.sub(pattern, name, text)
    return text


@pytest.fixture
def service() -> Iterator[OtherProgram]:
    with program_beside_document_server() as program:
        yield program


def configure(folder: Folder, service: OtherProgram, pipeline: str) -> None:
    folder.config.write_text(
        f"service: {{url: '{service.url}', api_key: '{service.api_key}'}}\nstate: var/ingestd.db\npipelines:\n{pipeline}",
        encoding="utf-8",
    )


def check(folder: Folder, commands: dict[str, str]) -> None:
    traced = {command: output for command, output in commands.items() if command.startswith("ingestd trace")}
    assert traced
    for command, output in traced.items():
        run = folder.here(*command.split()[1:])
        assert run.returncode == 0, run.stderr
        assert without_varying(run.stdout) == without_varying(output)


def test_the_page_on_mappings_shows_the_trace_of_its_file(tmp_path: Path, service: OtherProgram) -> None:
    commands = shown("mapping.md")
    folder = Folder(tmp_path, service)
    configure(folder, service, commands["tail -n +4 ingestd.yaml"])
    (tmp_path / "types.csv").write_text(commands["cat types.csv"], encoding="utf-8")
    rows = commands["cat drop/RUN07.csv"]
    for text in (rows.replace("1300,25", "1250,5"), rows):
        folder.write(text, "RUN07.csv")
        assert folder.here("sync").returncode == 0
    check(folder, commands)


def test_the_page_on_databases_shows_the_trace_of_its_table(tmp_path: Path, service: OtherProgram) -> None:
    commands = shown("databases.md")
    folder = Folder(tmp_path, service)
    configure(folder, service, commands["tail -n +4 ingestd.yaml"])
    for mass in ("0.10", "0.11", "0.12"):
        with closing(sqlite3.connect(tmp_path / "pdm.db")) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS part (number TEXT PRIMARY KEY, mass_g TEXT)")
            database.execute("INSERT OR REPLACE INTO part VALUES ('00417', ?)", (mass,))
        if mass != "0.12":
            assert folder.here("sync").returncode == 0
    check(folder, commands)
