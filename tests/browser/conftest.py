"""One browser and one service for all browser tests; each test has its own cookies, keys and workspaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium import webdriver

from tests.support.chromium import BROWSER, DRIVER, Browser, start
from tests.support.workspaced_process import WorkspaceService, new_key


def api(page: str, resource: str = "data-sink") -> str:
    """Return the API's address of a sink, or of its history (``data-sink-history``), by the address of its page."""
    return page.replace("/ui/workspaces/", "/v1/workspace/").replace("/sinks/", f"/{resource}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The running service, and an HTTP client of an owner."""

    data: Path
    url: str
    key: str
    http: httpx.Client

    def workspace(self, label: str = "Rover") -> str:
        created = self.http.post("/v1/workspace", json={"label": label})
        assert created.status_code == 201, created.text
        return str(created.json()["id"])

    def sink(self, workspace: str, entries: dict[str, str | None] | None = None, label: str = "Masses") -> str:
        """Return the address of a sink's page; the API's address differs only in its beginning (`api`)."""
        items = [{"key": key, "value": value, "dataType": "scalar"} for key, value in (entries or {}).items()]
        created = self.http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": label, "entries": items})
        assert created.status_code == 201, created.text
        return f"/ui/workspaces/{workspace}/sinks/{created.json()['visibleId']}"

    def write(self, sink: str, key: str, value: str) -> None:
        response = self.http.post(f"{api(sink)}/mass", json={"key": key, "value": value})
        assert response.status_code == 200, response.text

    def block(self, workspace: str, label: str, parent: str | None = None) -> str:
        body: dict[str, Any] = {"workspace": workspace, "label": label, **({"parentBlock": parent} if parent else {})}
        created = self.http.post(f"/v1/workspace/{workspace}/blocks", json=body)
        assert created.status_code == 201, created.text
        return str(created.json()["id"])


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    data = tmp_path_factory.mktemp("browser") / "data"
    key = new_key(data, name="anna.lind")
    environment = {"WORKSPACED_RETRY_SECONDS": "0,3600", "WORKSPACED_FAILED_AUTHENTICATIONS_PER_MINUTE": "0"}
    with WorkspaceService(data, "--dev", environment=environment) as running, running.client(key) as http:
        yield Service(data=data, url=running.url, key=key, http=http)


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    if not (BROWSER.exists() and DRIVER.exists()):
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    driver = start()
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def chromium(driver: webdriver.Chrome, service: Service) -> Browser:
    return Browser(driver, service.url)


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.fresh()
    return chromium


@pytest.fixture
def signed_in(browser: Browser, service: Service) -> Browser:
    browser.sign_in(service.key)
    return browser


MakeKey = Callable[..., str]


@pytest.fixture
def make_key(service: Service) -> MakeKey:
    def make(name: str, role: str = "owner") -> str:
        return new_key(service.data, name=name, role=role)

    return make
