"""`ingestd sync` with files of other authors. Deliveries by single requests have tests of their own.

The sink becomes equal to what Python's csv and json modules read from the file, value by value; unchanged values are not
written again; changed values are written once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import here
from tests.support.entry_writes import writes_by_key
from tests.support.real_data import FILES, FOLDER, Number, RealFile, Row
from tests.support.recorded_workspaced import RecordedWorkspaced

pytestmark = [
    pytest.mark.workplace_data,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="the folder ../shared/data with real files is not beside the checkout"
    ),
    pytest.mark.timeout(300),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RecordedWorkspaced]:
    with RecordedWorkspaced(tmp_path / "workspaced") as workspaced:
        yield workspaced


def configure(folder: Path, service: RecordedWorkspaced, file: RealFile, columns: tuple[str, ...]) -> None:
    pipeline = {
        "name": "real",
        "source": {"connector": "directory", "path": "drop", "settle_seconds": 0},
        "entries": {"key": file.template + ".{column}", "columns": list(columns), "type": "text"},
        "sink": {"workspace": service.workspace("Real"), "label": file.name},
    }
    settings = {
        "service": {"url": service.url, "api_key": service.api_key, "client_id": "bench-3"},
        "state": "ingestd.db",
        "pipelines": [pipeline],
    }
    (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML


def drop(folder: Path, file: RealFile, rows: list[Row]) -> None:
    """Write the file outside the folder, then rename it into the folder, as exporters should."""
    (folder / "drop").mkdir(exist_ok=True)
    written = folder / "being-written"
    written.write_text(file.text(rows), encoding="utf-8", newline="")
    written.rename(folder / "drop" / file.dropped)


def sync(folder: Path) -> tuple[int, str]:
    run = here(folder, "sync", "-c", str(folder / "ingestd.yaml"))
    return run.returncode, run.stdout + run.stderr


def change_three(file: RealFile, rows: list[Row], column: str) -> list[str]:
    """Change a value in three rows that alone determine their keys; return the keys of the changed entries."""
    owners = Counter(file.key_of(row) for row in rows)
    chosen = [row for row in rows if owners[file.key_of(row)] == 1 and file.key_of(row) and row[column] is not None]
    picked = [chosen[0], chosen[len(chosen) // 2], chosen[-1]]
    for row in picked:
        old = row[column]
        row[column] = Number(f"{old}0") if isinstance(old, Number) and "." in old else type(old or "")(f"{old}1")
    return [f"{file.key_of(row)}.{column}" for row in picked]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_sink_equals_the_file_and_only_changes_are_sent(
    tmp_path: Path, service: RecordedWorkspaced, file: RealFile
) -> None:
    columns = file.columns
    rows = file.rows()
    configure(tmp_path, service, file, columns)
    drop(tmp_path, file, rows)
    without_key = sum(file.key_of(row) is None for row in rows)
    good = 3 if without_key else 0

    code, output = sync(tmp_path)
    assert code == good, output
    assert f"{without_key} rejected" in output
    wanted = file.entries(rows, columns)
    assert service.values(file.name) == {key: (value, "text") for key, value in wanted.items()}
    assert max(writes_by_key(service.writes()).values()) == 1

    service.forget_requests()
    assert sync(tmp_path)[0] == good
    assert service.writes() == []
    drop(tmp_path, file, rows)
    assert sync(tmp_path)[0] == good
    assert service.writes() == [], "the same content in a new file is no change"

    changed = change_three(file, rows, columns[-1])
    drop(tmp_path, file, rows)
    assert sync(tmp_path)[0] == good
    assert writes_by_key(service.writes()) == dict.fromkeys(changed, 1)
    wanted = file.entries(rows, columns)
    assert service.values(file.name) == {key: (value, "text") for key, value in wanted.items()}


def test_the_converted_files_have_the_characters_of_the_originals() -> None:
    """The reference is valid only if its conversion reformatted nothing."""
    for file in FILES:
        original = (FOLDER / file.name).read_text(encoding="utf-8")
        for row in file.rows():
            for value in row.values():
                written = (value or "").replace('"', '""' if file.name.endswith("sv") else '\\"')
                assert written in original
