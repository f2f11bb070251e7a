"""Two pipelines that read the same files, or the files that the other one writes: no file is lost, and none is read twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import here, write_configuration
from tests.support.document_server import DocumentServer

ARCHIVE: dict[str, Any] = {
    "connector": "directory",
    "path": "drop",
    "settle_seconds": 0,
    "after": "archive",
    "archive": "done",
}
KEEP: dict[str, Any] = {"connector": "directory", "path": "drop", "settle_seconds": 0}


@pytest.mark.parametrize(
    "second",
    [
        KEEP | {"pattern": "run*"},
        KEEP | {"pattern": "run*", "after": "delete"},
        {"connector": "file", "path": "drop/run.csv", "settle_seconds": 0},
    ],
)
def test_a_file_that_another_pipeline_reads_stays_and_each_pipeline_reads_it_once(
    tmp_path: Path, server: DocumentServer, second: dict[str, Any]
) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/run.csv").write_text("n\n1\n2\n")
    config = write_configuration(tmp_path, server.url, ARCHIVE, second)
    first_run = here(tmp_path, "sync", "-c", str(config))
    assert "run.csv stays after it is read, because pipeline 'p1' reads it, too, and would miss it." in first_run.stderr
    assert [len(server.values(f"Sink {number}")) for number in range(2)] == [2, 2]
    server.forget_requests()
    second_run = here(tmp_path, "sync", "-c", str(config))
    assert "0 entries delivered, 0 pending, 0 rejected." in second_run.stdout
    assert server.writes() == []
    assert (tmp_path / "drop/run.csv").exists()
    assert not (tmp_path / "done/run.csv").exists()
    check = here(tmp_path, "check", "-c", str(config))
    assert "run.csv stays after it is read, because pipeline 'p1' reads it, too" in check.stdout


def test_a_file_is_not_archived_where_another_pipeline_would_read_it(tmp_path: Path, server: DocumentServer) -> None:
    for name in ("drop", "done"):
        (tmp_path / name).mkdir()
    (tmp_path / "drop/run.csv").write_text("n\n1\n2\n")
    config = write_configuration(tmp_path, server.url, ARCHIVE, KEEP | {"path": "done"})
    for _ in range(2):
        run = here(tmp_path, "sync", "-c", str(config))
        assert "done/run.csv is not written, because pipeline 'p1' reads that folder" in run.stderr
    assert (tmp_path / "drop/run.csv").exists()
    assert len(server.values("Sink 0")) == 2
    assert server.store.by_label("Sink 1") == []
