"""The directory connector passes the conformance suite."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.formats.csv import Csv
from connectors.formats.csv.reader import read_csv
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.reader import read_ndjson
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig


class FolderRig(Rig):
    """A file of rows, and a second file."""

    def __init__(
        self, folder: Path, suffix: str, header: list[str], row: Callable[[int, str], str], bad: str, **more: Any
    ) -> None:
        self._path = folder / "drop" / f"a{suffix}"
        self._path.parent.mkdir()
        self._base = folder
        self._header = header
        self._row = row
        self._bad = bad
        self._options = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0} | more)
        self._rows = [row(number, "0.10") for number in range(40)]
        self._write()
        self._path.with_name(f"b{suffix}").write_text("\n".join([*header, row(1, "x"), row(2, "y"), row(3, "z")]))

    def connector(self) -> Connector:
        return DirectoryConnector(self._options, SourceContext(pipeline="t", base=self._base, now=lambda: 4e9))

    def add(self) -> None:
        self._rows.append(self._row(len(self._rows), "new"))
        self._write()

    def change(self) -> None:
        self._rows[3] = self._row(3, "changed")
        self._write()

    def remove(self) -> None:
        del self._rows[5]
        self._write()

    def add_unreadable(self) -> bool:
        self._rows.append(self._bad)
        self._write()
        return True

    def broken(self) -> Connector:
        self._path.write_text(" ")
        self._path.with_name("c.csv").write_text("a,a\n1,2\n")
        return self.connector()

    def _write(self) -> None:
        self._path.write_text("\n".join([*self._header, *self._rows]) + "\n")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read blocks so small that forty rows are several batches."""
    monkeypatch.setattr(Csv, "read", lambda _, file, name: read_csv(file, name, block_bytes=100))
    monkeypatch.setattr(Ndjson, "read", lambda _, file, name: read_ndjson(file, name, block_bytes=100))


class TestCsvFolder(ConnectorConformance):
    @pytest.fixture(params=["keep", "archive", "delete"])
    def rig(self, tmp_path: Path, request: pytest.FixtureRequest) -> Rig:
        return FolderRig(
            tmp_path, ".csv", ["part,mass"], lambda n, v: f"P{n},{v}", "P1,2,3", after=request.param, archive="done"
        )


class TestNdjsonFolder(ConnectorConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Rig:
        return FolderRig(tmp_path, ".ndjson", [], lambda n, v: f'{{"part": "P{n}", "mass": "{v}"}}', '{"part"')
