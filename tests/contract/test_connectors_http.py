"""The http connector passes the conformance suite: each way of paging is in one of the suites, with or without validators."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connectors.http import HttpConnector, HttpOptions
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig
from tests.support.rest_service import RestService, Sent, rest_service

PAGES: dict[str, Any] = {
    "single": "single",
    "link": "link",
    "next": {"type": "next", "path": "next"},
    "cursor": {"type": "cursor", "path": "meta.token", "param": "token"},
    "offset": {"type": "offset", "param": "offset"},
    "page": {"type": "page", "param": "page"},
    "odata": "odata",
}


class RestRig(Rig):
    """Ten records."""

    def __init__(self, service: RestService, base: Path, **more: Any) -> None:
        self._service = service
        self._context = SourceContext(pipeline="t", base=base, now=lambda: 0.0)
        self._settings = {"url": f"{service.url}/parts", "key": "id", "records": "data"} | more
        service.records = [
            {"id": number, "mass": "0.10", "at": f"2026-11-2{number // 4}T10:00:00Z"} for number in range(10)
        ]

    def connector(self) -> Connector:
        return HttpConnector(HttpOptions.model_validate(self._settings), self._context)

    def add(self) -> None:
        self._service.records.append({"id": len(self._service.records), "mass": "1e-7", "at": "2026-11-24T07:00:00Z"})

    def change(self) -> None:
        self._service.records[3] = {"id": 3, "mass": "changed", "at": "2026-11-25T07:00:00Z"}

    def remove(self) -> None:
        del self._service.records[5]

    def add_unreadable(self) -> bool:
        self._service.records.append({"mass": "no key", "at": "2026-11-24T08:00:00Z"})
        return True

    def broken(self) -> Connector:
        self._service.before = lambda _: Sent({"error": "gone"}, status=410)
        return self.connector()


class SnapshotRig(RestRig):
    unchanged_yields_nothing: ClassVar[bool] = False


@pytest.fixture
def service() -> Iterator[RestService]:
    with rest_service() as running:
        yield running


@pytest.mark.parametrize("paging", ["link", "cursor", "page", "odata"])
class TestWithoutValidators(ConnectorConformance):
    @pytest.fixture
    def rig(self, service: RestService, tmp_path: Path, paging: str) -> Rig:
        service.paging = paging
        return SnapshotRig(service, tmp_path, page=PAGES[paging], records="value" if paging == "odata" else "data")


@pytest.mark.parametrize("paging", ["single", "next", "offset"])
class TestWithValidators(ConnectorConformance):
    @pytest.fixture
    def rig(self, service: RestService, tmp_path: Path, paging: str) -> Rig:
        service.paging = paging
        service.validates = True
        return RestRig(service, tmp_path, page=PAGES[paging], deletes="remove")


@pytest.mark.parametrize("paging", ["single", "cursor"])
class TestIncremental(ConnectorConformance):
    @pytest.fixture
    def rig(self, service: RestService, tmp_path: Path, paging: str) -> Rig:
        service.paging = paging
        return RestRig(
            service, tmp_path, page=PAGES[paging], mode="incremental", since={"param": "since", "field": "at"}
        )
