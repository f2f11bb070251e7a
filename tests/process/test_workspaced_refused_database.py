"""A wrong password for PostgreSQL, or a pooler that shares sessions, is reported at the start and not retried for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.postgres_databases import databases
from tests.support.private_servers import pgbouncer
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


def test_a_pooler_that_shares_sessions_is_refused_with_a_sentence(tmp_path: Path) -> None:
    sentence = "a pooler in front of it shares one session between clients"
    serve = ("serve", "--data", str(tmp_path), "--port", "0")
    with databases() as made, made.migrated() as url, pgbouncer(url, {"postgres": "right"}) as pooler:
        pooled = _through(pooler.host, url)
        for command in (serve, ("migrate",), ("keys", "list")):
            ended = workspaced(*command, "--database", pooled)
            assert (ended.returncode, sentence in ended.stderr.splitlines()[-1]) == (78, True), ended.stderr
            assert "Set pool_mode = session" in ended.stderr
            assert "right" not in ended.stderr


@pytest.mark.parametrize("size", ["1", "5"])
def test_a_pooler_that_keeps_sessions_is_accepted_even_if_it_has_no_second_one(size: str) -> None:
    with (
        databases() as made,
        made.empty() as url,
        pgbouncer(url, {"postgres": "right"}, pool_mode="session", default_pool_size=size) as pooler,
    ):
        migrated = workspaced("migrate", "--database", _through(pooler.host, url))
        assert (migrated.returncode, migrated.stderr) == (0, "")


def _through(host: str, url: str) -> str:
    return f"postgresql://postgres:right@{host}{urlsplit(url).path}"
