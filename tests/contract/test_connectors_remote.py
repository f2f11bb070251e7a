"""The remote connector passes the conformance suite on OpenSSH's server, on an S3 server and on Azurite."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.formats.csv import Csv
from connectors.formats.csv.reader import read_csv
from connectors.remote import RemoteConnector, RemoteOptions
from ingestd.sdk import Batch, Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig
from ingestd.sdk.testing.source_reader import read
from tests.support.azure_server import AzureServer
from tests.support.object_server import ObjectServer
from tests.support.sftp_server import SftpServer

_HEADER = "part,mass"


class RemoteRig(Rig):
    """A file of rows and a second file, below ``root`` of a server. Each content of a file has another length."""

    def __init__(self, server: SftpServer | ObjectServer | AzureServer, root: str, **more: Any) -> None:
        self._server = server
        self._root = root
        self._options = RemoteOptions.model_validate(server.options(f"{root}/drop", archive="done", **more))
        self._connectors: list[Connector] = []
        self._rows = [f"P{number},0.10" for number in range(40)]
        self._write("a.csv", "\n".join([_HEADER, *self._rows]))
        self._write("b.csv", f"{_HEADER}\nQ1,1\nQ2,2\nQ3,3\n")

    def connector(self) -> Connector:
        context = SourceContext(pipeline="t", base=Path("/nowhere"), now=lambda: 4e9)
        self._connectors.append(RemoteConnector(self._options, context))
        return self._connectors[-1]

    def add(self) -> None:
        self._rows.append(f"P{len(self._rows)},new")
        self._write("a.csv", "\n".join([_HEADER, *self._rows]))

    def change(self) -> None:
        self._rows[3] = "P3,changed"
        self._write("a.csv", "\n".join([_HEADER, *self._rows]))

    def remove(self) -> None:
        del self._rows[5]
        self._write("a.csv", "\n".join([_HEADER, *self._rows]))

    def add_unreadable(self) -> bool:
        self._rows.append("P1,2,3")
        self._write("a.csv", "\n".join([_HEADER, *self._rows]))
        return True

    def broken(self) -> Connector:
        self._write("a.csv", " ")
        self._write("c.csv", "a,a\n1,2\n")
        return self.connector()

    def _write(self, name: str, text: str) -> None:
        if isinstance(self._server, SftpServer):
            path = self._server.files / self._root / "drop" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        else:
            self._server.put(f"{self._root}/drop/{name}", text.encode())

    def close(self) -> None:
        for connector in self._connectors:
            connector.close()


class RemoteConformance(ConnectorConformance):
    """The suite, with one difference: if files are removed, a restarted connector compares the content of an unchanged file."""

    def test_an_unchanged_source_yields_nothing_from_its_last_cursor(self, rig: Rig) -> None:
        connector = rig.connector()
        if connector.options.after == "keep":
            super().test_an_unchanged_source_yields_nothing_from_its_last_cursor(rig)
            return
        for partition in list(connector.partitions()):
            cursor = read(connector, partition)[-1].cursor
            assert list(connector.read(partition, cursor)) == []
            (batch,) = rig.connector().read(partition, cursor)
            assert isinstance(batch, Batch)
            assert batch.unchanged


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read blocks so small that forty rows are several batches."""
    monkeypatch.setattr(Csv, "read", lambda _, file, name: read_csv(file, name, block_bytes=100))


def rig_of(server: SftpServer | ObjectServer | AzureServer, tmp_path: Path, after: str) -> Iterator[Rig]:
    found = RemoteRig(server, f"{tmp_path.parent.name}-{tmp_path.name}", after=after)
    yield found
    found.close()


class TestSftp(RemoteConformance):
    @pytest.fixture(params=["keep", "archive"])
    def rig(self, sftp_server: SftpServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
        yield from rig_of(sftp_server, tmp_path, request.param)


class TestBucket(RemoteConformance):
    @pytest.fixture(params=["keep", "delete"])
    def rig(self, bucket_server: ObjectServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
        yield from rig_of(bucket_server, tmp_path, request.param)


@pytest.fixture(scope="module")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    server = AzureServer(tmp_path_factory.mktemp("azurite"))
    yield server
    server.stop()


class TestContainer(RemoteConformance):
    @pytest.fixture
    def rig(self, azure_server: AzureServer, tmp_path: Path) -> Iterator[Rig]:
        yield from rig_of(azure_server, tmp_path, "archive")
