"""`ingestd init`: from an empty folder to the values of a sample in a real service."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import openpyxl
import psycopg
import pytest

from ingestd.commands.initial_configuration.sample import glob_of
from tests.support.daemon_process import environment, here
from tests.support.postgres_databases import databases
from tests.support.workspaced_process import WorkspaceService, new_key, workspaced

CSV = "part number,mass_kg,note,${env:HOME}\n00417,0.10,steel,1\n00418,2,cast: iron,2\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a real service with a workspace Rover, and a key."""
    data = tmp_path_factory.mktemp("service")
    key = new_key(data)
    assert workspaced("workspaces", "create", "Rover", "--data", str(data)).returncode == 0
    with WorkspaceService(data) as running:
        yield running.url, key


def test_without_a_workspace_the_command_that_creates_one_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data) as running:
        refused = here(tmp_path, "init", "--yes", "--url", running.url, INGESTD_API_KEY=key)
    assert refused.returncode == 5
    assert "Create one first, for example with 'workspaced workspaces create LABEL'." in refused.stderr


def delivered(folder: Path, key: str) -> dict[str, str]:
    """Check and sync the new configuration; return the values in the service by the keys of the record 00417."""
    variables = {"INGESTD_API_KEY": key}
    check = here(folder, "check", **variables)
    assert check.returncode == 0, check.stdout + check.stderr
    sync = here(folder, "sync", **variables)
    assert sync.returncode == 0, sync.stderr
    found = {}
    for name in ("mass_kg", "note", "${env:HOME}"):
        trace = here(folder, "trace", f"00417.{name}", "--json", **variables)
        for one in json.loads(trace.stdout):
            assert one["delivered_at"]
            found[name] = one["value"]
    return found


def write_csv(folder: Path) -> Path:
    (folder / "drop").mkdir()
    path = folder / "drop" / "Mass Budget.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def write_workbook(folder: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in (("part number", "mass_kg"), ("00417", 0.1), ("00418", 2)):
        sheet.append(row)
    book.save(folder / "budget.xlsx")
    return folder / "budget.xlsx"


def write_json(folder: Path) -> Path:
    path = folder / "budget.json"
    path.write_text(
        '[{"part number": "00417", "mass_kg": 0.10}, {"part number": "00418", "mass_kg": 2}]', encoding="utf-8"
    )
    return path


def write_decimal_commas(folder: Path) -> Path:
    """A column of each notation. The other columns prove that the comma of 1,250 separates decimals."""
    path = folder / "budget.csv"
    path.write_text("part number;mass_kg;note;cost\n00417;0,10;1,250;1.250,5\n00418;2,5;2,500;12\n", encoding="utf-8")
    return path


def test_numbers_with_a_decimal_comma_arrive_as_numbers(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    words = ("--yes", "--url", url, "--sample", str(write_decimal_commas(tmp_path)), "--sink", "commas")
    done = here(tmp_path, "init", *words, "--key", "part number", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert "note: number with a decimal comma, always filled" in done.stderr
    text = (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
    assert 'columns: ["mass_kg", "note"], values: {decimal: ","}}' in text
    assert 'columns: ["cost"], values: {decimal: ",", group: "."}}' in text
    assert delivered(tmp_path, key) == {"mass_kg": "0.10", "note": "1.250"}


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (write_csv, {"mass_kg": "0.10", "${env:HOME}": "1"}),
        (write_workbook, {"mass_kg": "0.1"}),
        (write_json, {"mass_kg": "0.10"}),
    ],
)
def test_from_an_empty_folder_the_values_of_a_sample_arrive(
    tmp_path: Path, service: tuple[str, str], write: object, expected: dict[str, str]
) -> None:
    url, key = service
    assert callable(write)
    sample = write(tmp_path)
    words = ("--yes", "--url", url, "--sample", str(sample), "--key", "part number", "--sink", sample.suffix)
    done = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
    assert re.search(r"^state: .?var/ingestd\.db", text, re.MULTILINE)
    assert key not in text
    assert "#" in text
    assert delivered(tmp_path, key) == expected
    again = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
    assert (again.returncode, "is not overwritten" in again.stderr) == (5, True)
    assert (tmp_path / "ingestd.yaml").read_text(encoding="utf-8") == text


def test_a_key_that_repeats_is_never_proposed_and_a_given_one_is_reported(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    (tmp_path / "runs.csv").write_text("bench,mass,run\nnorth,0.10,1\nnorth,2,2\n", encoding="utf-8")
    words = ("--url", url, "--sample", "runs.csv")
    asked = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
    assert (asked.returncode, "The values of 'run' do not repeat" in asked.stderr) == (2, True), asked.stderr
    assert "Name the right value with --key, or accept 'run' with --yes." in asked.stderr
    done = here(tmp_path, "init", *words, "--yes", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert '"{run}.{column}", columns: ["mass"]' in (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
    chosen = here(tmp_path, "init", *words, "--output", "bench.yaml", "--key", "bench", INGESTD_API_KEY=key)
    assert chosen.returncode == 0, chosen.stderr
    assert "1 record of the sample repeats the key of an earlier one." in chosen.stderr
    assert "# In the sample 1 record had the key of an earlier record" in (tmp_path / "bench.yaml").read_text(
        encoding="utf-8"
    )


def test_a_proposed_key_may_have_the_separator_of_columns_in_its_name(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    (tmp_path / "runs.csv").write_text("bench,mass,run + try\nnorth,0.10,1\nnorth,2,2\n", encoding="utf-8")
    done = here(tmp_path, "init", "--url", url, "--sample", "runs.csv", "--yes", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert '"{run + try}.{column}"' in (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run.2026-11.0042.csv", "*.csv"),
        ("Run.0042.CSV", "*.csv"),
        ("run.0042.csv.gz", "*.csv.gz"),
        ("run.0042.tdms", "*.tdms"),
    ],
)
def test_the_pattern_is_that_of_the_format_of_the_sample(name: str, expected: str) -> None:
    assert glob_of(name) == expected


def test_files_of_the_next_day_match_the_pattern_of_a_sample_with_a_date(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    drop = tmp_path / "drop"
    drop.mkdir()
    (drop / "run.2026-11-24.csv").write_text("run,mass\n1,0.10\n", encoding="utf-8")
    words = ("--yes", "--url", url, "--sample", "drop/run.2026-11-24.csv")
    done = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    (drop / "run.2026-11-25.csv").write_text("run,mass\n2,0.20\n", encoding="utf-8")
    checked = here(tmp_path, "check", INGESTD_API_KEY=key)
    assert "Matching *.csv: 2 files" in checked.stdout
    text = (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
    assert ("- name: drop\n" in text, 'label: "drop"}' in text) == (True, True), text


def test_of_many_columns_the_first_ones_are_listed(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    (tmp_path / "wide.csv").write_text(
        f"{','.join(f'c{number}' for number in range(60))}\n{','.join('P' + '1' * 59)}\n", encoding="utf-8"
    )
    done = here(tmp_path, "init", "--yes", "--url", url, "--sample", "wide.csv", INGESTD_API_KEY=key)
    assert (done.returncode, "  c49: integer" in done.stderr, "c50: " in done.stderr) == (0, True, False), done.stderr
    assert "and 10 more columns" in done.stderr


def test_ordinary_words_of_a_message_are_not_masked(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    (tmp_path / "runs.xyz").write_text("run,mass\n1,0.10\n", encoding="utf-8")
    done = here(tmp_path, "init", "--yes", "--url", url, "--sample", "runs.xyz", INGESTD_API_KEY=key)
    assert (done.returncode, "its suffix must be one of .csv" in done.stderr) == (5, True), done.stderr


def test_a_table_and_a_chosen_column_of_texts(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    with closing(sqlite3.connect(tmp_path / "pdm.db")) as database:
        database.execute("CREATE TABLE part (number TEXT PRIMARY KEY, note TEXT)")
        database.execute("INSERT INTO part VALUES ('00417', 'steel')")
        database.commit()
    words = ("--yes", "--url", url, "--database", "sqlite:///pdm.db", "--table", "part", "--column", "note")
    done = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert delivered(tmp_path, key) == {"note": "steel"}


@contextmanager
def database_of_parts() -> Iterator[str]:
    """Yield the address of a PostgreSQL database with a table of parts."""
    with databases() as server, server.empty() as address:
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE part (number text PRIMARY KEY, mass_kg numeric)")
            connection.execute("INSERT INTO part VALUES ('00417', 0.10)")
        yield address


def test_the_address_of_a_database_server_goes_to_a_private_file(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    with database_of_parts() as address:
        parts = urlsplit(address)
        secret = urlunsplit(parts._replace(netloc=f"postgres:planted-7351@{parts.hostname}:{parts.port or 5432}"))
        words = ("--yes", "--url", url, "--database", secret, "--table", "part", "--sink", "PostgreSQL")
        done = here(tmp_path, "init", *words, INGESTD_API_KEY=key)
        assert (done.returncode, "planted-7351" in done.stdout + done.stderr) == (0, False), done.stderr
        assert "planted-7351" not in (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
        assert (tmp_path / "database_url").read_text(encoding="utf-8") == f"{secret}\n"
        assert stat.S_IMODE((tmp_path / "database_url").stat().st_mode) == 0o600
        assert delivered(tmp_path, key) == {"mass_kg": "0.10"}


def test_the_questions_are_asked_on_a_terminal_and_the_key_goes_to_a_private_file(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    write_csv(tmp_path)
    screen = dialogue(
        tmp_path,
        {
            "Address of": url, "API key": key, "Workspace": "", "A sample file": "drop/Mass Budget.csv",
            "Send 'mass_kg'": "", "Send 'note'": "y", "Send '${env:HOME}'": "n", "Name of the pipeline": "", "Label of": "Asked",
        },
    )  # fmt: skip
    assert key not in screen
    assert (tmp_path / "api_key").read_text(encoding="utf-8") == f"{key}\n"
    assert stat.S_IMODE((tmp_path / "api_key").stat().st_mode) == 0o600
    assert delivered(tmp_path, "none") == {"mass_kg": "0.10", "note": "steel"}


def dialogue(folder: Path, said: dict[str, str]) -> str:
    """Type into a terminal what each question of `ingestd init` needs; return what the terminal showed."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in environment(folder, TERM="xterm").items() if name != "INGESTD_API_KEY"}
    command = [sys.executable, "-m", "ingestd", "init"]
    with subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as asked:
        os.close(theirs)
        screen = ""
        waiting = dict(said)
        while chunk := read(ours):
            screen += chunk
            question = next(iter(waiting), None)
            if question is not None and re.search(rf"{re.escape(question)}[^\n]*: ?$", screen):
                os.write(ours, f"{waiting.pop(question)}\n".encode())
        assert asked.wait(60) == 0, screen
    os.close(ours)
    assert not waiting
    return screen


def read(terminal: int) -> str:
    if not select.select([terminal], [], [], 30)[0]:
        return ""
    try:
        return os.read(terminal, 65_536).decode()
    except OSError:  # Linux reports this when the other side is closed
        return ""


def test_the_password_of_a_database_is_asked_for_and_not_shown(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    with database_of_parts() as address:
        screen = dialogue(
            tmp_path,
            {
                "Address of": url, "API key": key, "Workspace": "", "A sample file": address,
                "Password of postgres": "planted:7351",
                "Table": "part", "Send 'mass_kg'": "", "Name of the pipeline": "", "Label of": "With password",
            },
        )  # fmt: skip
        assert "planted" not in screen
        written = (tmp_path / "database_url").read_text(encoding="utf-8")
        assert written == address.replace("postgres@", "postgres:planted%3A7351@") + "\n"
        assert delivered(tmp_path, "none") == {"mass_kg": "0.10"}


def test_a_wrong_key_an_unknown_sample_and_a_missing_option_leave_nothing_behind(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    sample = write_csv(tmp_path)
    before = {path.name for path in tmp_path.iterdir()} | {"plug-ins"}
    common = ("init", "--yes", "--url", url)
    wrong = here(tmp_path, *common, "--sample", str(sample), INGESTD_API_KEY="edw_wrong")
    assert (wrong.returncode, "can't be used" in wrong.stderr, "edw_wrong" in wrong.stderr) == (5, True, False)
    missing = here(tmp_path, *common, "--sample", "none.csv", INGESTD_API_KEY=key)
    assert (missing.returncode, missing.stderr.splitlines()[-1]) == (5, "Error: There is no file none.csv.")
    folder = here(tmp_path, *common, "--sample", ".", INGESTD_API_KEY=key)
    assert (folder.returncode, folder.stderr.splitlines()[-1]) == (
        5, "Error: . is a folder. Name one of its files with --sample; the configuration reads the whole folder."
    )  # fmt: skip
    column = here(tmp_path, *common, "--sample", str(sample), "--key", "part", INGESTD_API_KEY=key)
    assert (column.returncode, "has no column 'part'" in column.stderr) == (2, True)
    typed = here(tmp_path, *common, "--api-key", key)
    assert (typed.returncode, key in typed.stderr) == (2, False)
    assert here(tmp_path, "init", "--yes", INGESTD_API_KEY=key, NO_PROXY="*").returncode == 5
    assert {path.name for path in tmp_path.iterdir()} == before
