"""A wrong password for PostgreSQL is reported at the start and not retried for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.refusing_postgres import refusing_postgres
from tests.support.workspaced_process import workspaced

WRONG = "hunter2hunter2"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with refusing_postgres() as port:
        yield f"postgresql://someone@127.0.0.1:{port}/things"


@pytest.mark.parametrize(
    ("password", "words"), [(WRONG, "password authentication failed"), ("", "no password supplied")]
)
def test_a_start_with_a_wrong_or_missing_password_ends_with_a_sentence_and_78(
    database: str, tmp_path: Path, password: str, words: str
) -> None:
    ended = workspaced(
        *("serve", "--data", str(tmp_path), "--port", "0", "--database", database),
        environment={"PGPASSWORD": password, "PGPASSFILE": str(tmp_path / "absent")},
    )
    assert ended.returncode == 78
    assert words in ended.stderr.splitlines()[-1]
    assert "Set the right password in PGPASSWORD, ~/.pgpass" in ended.stderr.splitlines()[-1]
    assert WRONG not in ended.stderr


@pytest.mark.parametrize("command", [("migrate",), ("keys", "list")], ids=" ".join)
def test_a_command_with_a_wrong_password_reports_it(database: str, command: tuple[str, ...]) -> None:
    refused = workspaced(*command, "--database", database, environment={"PGPASSWORD": WRONG})
    assert refused.returncode == 78
    assert refused.stderr.startswith("workspaced: The database postgresql://someone@127.0.0.1:")
    assert "Set the right password in" in refused.stderr
