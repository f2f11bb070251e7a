"""The daemon knows every pipeline that reads a file, by the options of its connector."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.daemon.configuration import read_configuration
from ingestd.daemon.files_read import FilesRead

ARCHIVE = "connector: directory, path: drop, after: archive, archive: done"
KEEP = "connector: directory, path: drop"


def files_read(folder: Path, first: str, second: str) -> FilesRead:
    """Return the files of the pipelines 'mass' and 'power' with these sources."""
    path = folder / "ingestd.yaml"
    text = 'service: {url: "http://127.0.0.1:8400", api_key: key}\nstate: state.db\npipelines:\n'
    for name, source in (("mass", first), ("power", second)):
        text += f"  - {{name: {name}, source: {{{source}}}, entries: {{key: k, value: v}},\n"
        text += f"     sink: {{workspace: w, label: {name}}}}}\n"
    path.write_text(text)
    configuration = read_configuration(path, environment={}, cwd=folder)
    return FilesRead(lambda: configuration)


@pytest.mark.parametrize(
    ("first", "second", "file", "readers"),
    [
        (KEEP, KEEP, "drop/run.csv", {"mass", "power"}),
        (KEEP + ", recursive: true", ARCHIVE.replace("path: drop", "path: drop/in"), "drop/in/a.csv", {"mass", "power"}),
        (ARCHIVE + ", pattern: 'run*.csv'", KEEP + ", pattern: '*_A.CSV'", "drop/run_a.csv", {"mass", "power"}),
        (ARCHIVE, KEEP.replace("drop", "link") + ", pattern: 'run*'", "drop/run.csv", {"mass", "power"}),
        (ARCHIVE, "connector: file, path: drop/budget.csv", "drop/budget.csv", {"mass", "power"}),
        (ARCHIVE, "connector: file, path: drop/budget.csv", "drop/run.csv", {"mass"}),
        (ARCHIVE, "connector: log, path: drop, pattern: 'bench*.csv'", "drop/bench1.csv", {"mass", "power"}),
        (ARCHIVE, "connector: directory, path: done", "done/run.csv", {"power"}),
        (ARCHIVE, "connector: directory, path: done/failed", "done/failed/run.csv", {"power"}),
        (KEEP + ", quarantine: bad", "connector: directory, path: bad", "bad/run.csv.rejected.csv", {"power"}),
        (KEEP + ", recursive: true", ARCHIVE.replace("drop", "other").replace("done", "drop/done"), "drop/done/a.csv", {"mass"}),
        (KEEP + ", recursive: true", KEEP.replace("drop", "dropped"), "dropped/a.csv", {"power"}),
    ],
)  # fmt: skip
def test_every_pipeline_that_reads_a_file_is_known(
    tmp_path: Path, first: str, second: str, file: str, readers: set[str]
) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "link").symlink_to("drop")
    assert files_read(tmp_path, first, second).readers(f"{tmp_path}/{file}") == readers
