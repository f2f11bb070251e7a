"""Connectors of servers pass the suite of faults: connections are cut, stalled and half-closed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from connectors.database import DatabaseConnector
from connectors.http import HttpConnector
from connectors.opcua import OpcuaConnector
from connectors.remote import RemoteConnector
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import FaultConformance, FaultRig
from tests.support.object_server import ObjectServer
from tests.support.opcua_server import opcua_server
from tests.support.postgres_server import server_of_tests
from tests.support.rest_service import rest_service
from tests.support.sftp_server import SftpServer

ROWS = "part,mass\n" + "".join(f"P{number},0.10\n" for number in range(40))


class ServerRig(FaultRig):
    """A connector with the port of the proxy in its ``url``, or in an option of another name."""

    def __init__(self, kind: type[Connector], folder: Path, port: int, address: str, **options: Any) -> None:
        self._kind = kind
        self._folder = folder
        self._port = port
        self._address = address
        self._options = options

    @property
    def port(self) -> int:
        return self._port

    def connector(self, port: int) -> Connector:
        url = urlsplit(str(self._options[self._address]))
        before = url.netloc.rpartition(":")[0]
        options = self._options | {self._address: urlunsplit(url._replace(netloc=f"{before}:{port}"))}
        if "known_hosts" in options:  # lists hosts with their ports
            known = self._folder / f"known-{port}"
            known.write_text(Path(options["known_hosts"]).read_text().replace(f":{self._port}", f":{port}"))
            options["known_hosts"] = str(known)
        context = SourceContext(
            pipeline="t", base=self._folder, now=time.time, steady=time.monotonic, kept_folder=self._folder / "kept"
        )
        return self._kind(self._kind.Options.model_validate(options), context)


class TestHttp(FaultConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[FaultRig]:
        with rest_service() as service:
            service.records = [{"id": number, "mass": "0.10"} for number in range(10)]
            service.paging = "offset"
            port = urlsplit(service.url).port or 0
            options = {
                "url": f"{service.url}/parts",
                "key": "id",
                "records": "data",
                "page": {"type": "offset", "param": "offset"},
                "timeout_seconds": 1,
            }
            yield ServerRig(HttpConnector, tmp_path, port, "url", **options)


class TestOpcua(FaultConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[FaultRig]:
        with opcua_server({f"V{number}": (number, "Int32") for number in range(10)}) as server:
            options = {"browse": "Line1/**", "mode": "poll", "security": "none", "timeout_seconds": 1}
            yield ServerRig(OpcuaConnector, tmp_path, server.port, "url", url=server.url, **options)


class TestPostgres(FaultConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[FaultRig]:
        url, table = server_of_tests(), f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT n AS id, repeat('x', 200) AS value FROM generate_series(1, 50) n"
            )
            try:
                limits = {"connect_timeout_seconds": 2, "statement_timeout_seconds": 1}
                yield ServerRig(
                    DatabaseConnector,
                    tmp_path,
                    urlsplit(url).port or 5432,
                    "url",
                    url=url,
                    table=table,
                    key="id",
                    **limits,
                )
            finally:
                connection.execute(f"DROP TABLE {table}")


class TestSftp(FaultConformance):
    @pytest.fixture
    def rig(self, sftp_server: SftpServer, tmp_path: Path) -> FaultRig:
        drop = sftp_server.files / f"faults-{tmp_path.name}"
        drop.mkdir()
        (drop / "a.csv").write_text(ROWS)
        options = sftp_server.options(drop.name, timeout_seconds=1)
        return ServerRig(RemoteConnector, tmp_path, sftp_server.port, "url", **options)


class TestBucket(FaultConformance):
    @pytest.fixture
    def rig(self, bucket_server: ObjectServer, tmp_path: Path) -> FaultRig:
        bucket_server.put(f"faults-{tmp_path.name}/a.csv", ROWS.encode())
        options = bucket_server.options(f"faults-{tmp_path.name}", timeout_seconds=1)
        return ServerRig(RemoteConnector, tmp_path, urlsplit(bucket_server.endpoint).port or 0, "endpoint", **options)
