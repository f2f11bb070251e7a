"""A reading of ten times as many records needs no more memory, with the connectors that read any amount."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ingestd.sdk.testing import MemoryConformance, MemoryRig
from tests.support.rest_service import RestService, rest_service


class TableFileRig(MemoryRig):
    """A file of rows with 1,000 bytes each; the small one is as large as a few chunks of the reader."""

    records: ClassVar[int] = 20_000

    def __init__(self, folder: Path, **options: Any) -> None:
        drop = folder / "drop"
        drop.mkdir()
        self._file = drop / "a.csv"
        self._source = {"path": str(drop)} | options

    def source(self) -> Mapping[str, Any]:
        return self._source

    def fill(self, records: int) -> None:
        with self._file.open("w") as file:
            file.write("number,text\n")
            file.writelines(f"{number},{number:0980}\n" for number in range(records))


class TestFolder(MemoryConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> MemoryRig:
        return TableFileRig(tmp_path, connector="directory", settle_seconds=0)


class TestLog(MemoryConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> MemoryRig:
        return TableFileRig(tmp_path, connector="log")


class TestTable(MemoryConformance):
    class _Rig(MemoryRig):
        def __init__(self, folder: Path) -> None:
            self._path = folder / "parts.db"

        def source(self) -> Mapping[str, Any]:
            batches = {"batch_bytes": 2**20}  # the small table has several
            return {
                "connector": "database",
                "url": f"sqlite:///{self._path}",
                "table": "parts",
                "key": "number",
            } | batches

        def fill(self, records: int) -> None:
            with closing(sqlite3.connect(self._path)) as database, database:
                database.execute("CREATE TABLE IF NOT EXISTS parts (number INTEGER PRIMARY KEY, text TEXT)")
                database.execute("DELETE FROM parts")
                rows = ((number, f"{number:0980}") for number in range(records))
                database.executemany("INSERT INTO parts VALUES (?, ?)", rows)

    @pytest.fixture
    def rig(self, tmp_path: Path) -> MemoryRig:
        return self._Rig(tmp_path)


class TestPages(MemoryConformance):
    class _Rig(MemoryRig):
        records: ClassVar[int] = 1_000
        record_bytes: ClassVar[int] = 10_000

        def __init__(self, service: RestService) -> None:
            service.paging = "offset"
            self._service = service

        def source(self) -> Mapping[str, Any]:
            page = {"type": "offset", "param": "offset"}
            return {
                "connector": "http",
                "url": f"{self._service.url}/parts",
                "key": "id",
                "records": "data",
                "page": page,
            }

        def fill(self, records: int) -> None:
            self._service.records = [{"id": number, "text": f"{number:09970}"} for number in range(records)]

    @pytest.fixture
    def rig(self) -> Iterator[MemoryRig]:
        with rest_service() as service:
            service.size = 100
            yield self._Rig(service)
