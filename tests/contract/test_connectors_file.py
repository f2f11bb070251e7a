"""The file connector passes the conformance suite."""

from pathlib import Path

import pytest
from openpyxl import Workbook

from connectors.file import FileConnector, FileOptions
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig


class FileRig(Rig):
    """A file that is saved in place; ``workbook``: a spreadsheet instead of CSV."""

    def __init__(self, folder: Path, *, workbook: bool, deletes: str) -> None:
        self._base = folder
        self._workbook = workbook
        self._path = folder / ("masses.xlsx" if workbook else "masses.csv")
        self._options = FileOptions.model_validate({"path": self._path.name, "settle_seconds": 0, "deletes": deletes})
        self._rows = [[f"P{number}", "0.10"] for number in range(20)]
        self._save()

    def connector(self) -> Connector:
        return FileConnector(self._options, SourceContext(pipeline="t", base=self._base, now=lambda: 4e9))

    def add(self) -> None:
        self._rows.append(["new", "1"])
        self._save()

    def change(self) -> None:
        self._rows[3][1] = "changed"
        self._save()

    def remove(self) -> None:
        del self._rows[5]
        self._save()

    def add_unreadable(self) -> bool:
        if not self._workbook:
            self._rows.append(["P1", "2,3"])
            self._save()
        return not self._workbook

    def broken(self) -> Connector:
        self._path.write_bytes(b"")
        return self.connector()

    def _save(self) -> None:
        if not self._workbook:
            self._path.write_text("part,mass\n" + "".join(f"{part},{mass}\n" for part, mass in self._rows))
            return
        book = Workbook()
        assert book.active is not None
        for row in [["part", "mass"], *self._rows]:
            book.active.append(row)
        book.save(self._path)


class TestCsvFile(ConnectorConformance):
    @pytest.fixture(params=["keep", "remove"])
    def rig(self, tmp_path: Path, request: pytest.FixtureRequest) -> Rig:
        return FileRig(tmp_path, workbook=False, deletes=request.param)


class TestWorkbook(ConnectorConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Rig:
        return FileRig(tmp_path, workbook=True, deletes="remove")
