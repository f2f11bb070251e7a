"""A service of records and connectors for it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.http import HttpConnector, HttpOptions
from ingestd.sdk import SourceContext
from tests.support.rest_service import RestService, rest_service


@pytest.fixture
def service() -> Iterator[RestService]:
    with rest_service() as running:
        running.records = [{"id": number, "mass": f"{number}.50"} for number in range(10)]
        yield running


@pytest.fixture
def connect(service: RestService, tmp_path: Path) -> Callable[..., HttpConnector]:
    def create(**more: Any) -> HttpConnector:
        settings = {"url": f"{service.url}/parts", "records": "data", "key": "id", "timeout_seconds": 5} | more
        context = SourceContext(pipeline="t", base=tmp_path, now=lambda: 1_800_000_000.0)
        return HttpConnector(HttpOptions.model_validate(settings), context)

    return create
