"""The state file stores failed parts until they recover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.mirror.reports import FailedPart
from ingestd.mirror.sqlite import SqliteMirror


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[SqliteMirror]:
    with closing(SqliteMirror.open(tmp_path / "state.db")) as opened:
        yield opened


def failed(part: str, *, failures: int = 1, since: float = 10.0) -> FailedPart:
    return FailedPart(part=part, sentence=f"failure {failures}", failures=failures, since=since, retry_at=since + 1)


def test_repeated_failures_keep_the_time_of_the_first(mirror: SqliteMirror) -> None:
    mirror.failed_parts.record(failed("lane Rover · A", since=10.0))
    mirror.failed_parts.record(failed("lane Rover · A", failures=2, since=20.0))
    (stored,) = mirror.status.failed_parts()
    assert (stored.failures, stored.since, stored.retry_at, stored.sentence) == (2, 10.0, 21.0, "failure 2")


def test_a_recovered_part_is_deleted_and_a_restart_deletes_all(mirror: SqliteMirror) -> None:
    for part in ("a", "b", "c"):
        mirror.failed_parts.record(failed(part))
    mirror.failed_parts.clear("b")
    assert [one.part for one in mirror.status.failed_parts()] == ["a", "c"]
    mirror.failed_parts.clear_all()
    assert mirror.status.failed_parts() == []
