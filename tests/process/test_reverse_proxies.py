"""nginx and Caddy before the service, each with the configuration of docs/proxies.md."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.certificates import self_signed
from tests.support.executed_page import blocks
from tests.support.free_port import free_port
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key

PAGE = (Path(__file__).parents[2] / "docs" / "proxies.md").read_text(encoding="utf-8")
CLIENT = "127.0.0.9"
"""The address of the clients, which is no trusted proxy."""
MIB = 1_048_576


def nginx(folder: Path, port: int, service: int, certificate: Path, key: Path) -> list[str]:
    """Return the command that runs nginx with the page's configuration, a head of at most 1 s, and files in the folder."""
    (site,) = blocks(PAGE, "nginx")
    for shown, used in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("127.0.0.1:8400", f"127.0.0.1:{service}"),
        ("/etc/ssl/data.example.org.pem", str(certificate)),
        ("/etc/ssl/data.example.org.key", str(key)),
        ("client_header_timeout 15s", "client_header_timeout 1s"),
    ):
        assert site.count(shown) == 1, shown
        site = site.replace(shown, used)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; {user}\nevents {{}}\nhttp {{ access_log off;\n{paths}\n{site}}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(file)]


def caddy(folder: Path, port: int, service: int, certificate: Path, key: Path) -> list[str]:
    """Return the command that runs Caddy with the page's configuration, a head of at most 1 s, and no certificate of others."""
    (site,) = blocks(PAGE, "caddyfile")
    for shown, used in (
        ("{\n\tservers", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers"),
        ("data.example.org {", f"https://127.0.0.1:{port} {{\n\ttls {certificate} {key}"),
        ("127.0.0.1:8400", f"127.0.0.1:{service}"),
        ("read_header 15s", "read_header 1s"),
    ):
        assert site.count(shown) == 1, shown
        site = site.replace(shown, used)
    file = folder / "Caddyfile"
    file.write_text(site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A running service, and a proxy before it at ``port``."""

    service: WorkspaceService
    key: str
    port: int
    context: ssl.SSLContext

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            transport=httpx.HTTPTransport(verify=self.context, local_address=CLIENT),
            headers={"ClientId": "tests", **headers},
            timeout=DEADLINE_SECONDS,
        )


@pytest.fixture(scope="module", params=[nginx, caddy])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    command: Callable[[Path, int, int, Path, Path], list[str]] = request.param
    folder = tmp_path_factory.mktemp("proxy")
    program = shutil.which(command.__name__, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip(f"no {command.__name__} to test with: install Debian's package of that name")
    certificate, private = self_signed(folder, "site")
    key = new_key(folder / "data")
    environment = {"WORKSPACED_TRUSTED_PROXIES": "127.0.0.1", "WORKSPACED_LOG_REQUESTS": "true"}
    with WorkspaceService(folder / "data", environment=environment) as service, (folder / "log").open("w+") as log:
        port = free_port()
        words = command(folder, port, int(service.url.rpartition(":")[2]), certificate, private)
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        running = subprocess.Popen([program, *words[1:]], stdout=log, stderr=log, env={**os.environ, **home})
        try:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while True:  # it signals its start in no other way
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS).close()
                    break
                except OSError:
                    alive = running.poll() is None and time.monotonic() < deadline
                    assert alive, (folder / "log").read_text()
                    time.sleep(0.02)
            yield Site(service=service, key=key, port=port, context=ssl.create_default_context(cafile=certificate))
        finally:
            running.terminate()
            running.wait(DEADLINE_SECONDS)


def test_requests_uploads_and_escaped_keys_pass(site: Site) -> None:
    with site.client(**{"x-api-key": site.key}) as http:
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
        sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
        assert http.post(f"{sink}/mass", json={"key": "tank/1", "value": "2 kg"}).status_code == 200
        assert http.get(f"{sink}/tank%2F1").json()["value"] == "2 kg"
        query = {"workspaceId": workspace, "fileName": "large.bin"}
        content = bytes(range(256)) * (5 * MIB // 256)
        file = http.post("/v1/cloud-storage", params=query, content=content).json()["id"]
        assert http.get(f"/v1/cloud-storage/download/{file}").content == content
        link = http.post("/v1/cloud-storage/upload-link", json={"workspaceId": workspace, "fileName": "b"}).json()
        assert link["uploadUrl"].startswith(f"https://127.0.0.1:{site.port}/")


def test_the_service_has_the_address_of_the_client_whatever_it_sends(site: Site) -> None:
    # contract P6
    with site.client(**{"x-api-key": site.key}) as http:
        made = http.post("/v1/workspace", json={"label": "w"}, headers={"X-Forwarded-For": "203.0.113.9"})
        assert made.status_code == 201
        rows = http.get("/v1/audit-log?action=workspace.*").json()
        assert {row["ip"] for row in rows} == {CLIENT}


def test_a_head_that_trickles_ends_at_the_proxy(site: Site) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    raw = socket.create_connection(("127.0.0.1", site.port), timeout=DEADLINE_SECONDS)
    with context.wrap_socket(raw) as wire:
        wire.sendall(b"GET /trickling HTTP/1.1\r\nHost: data.example.org\r\n")
        wire.settimeout(0.1)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            try:
                wire.sendall(b"x: y\r\n")
                if not wire.recv(4_096):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the proxy waits for the end of the head")
    with site.client() as http:
        assert http.get("/healthz").status_code == 200
    site.service.wait_for_event(path="/healthz")
    assert "/trickling" not in site.service.log


def test_an_event_stream_is_not_buffered(site: Site) -> None:
    with site.client(**{"x-api-key": site.key}) as http, site.client() as browser:
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
        sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
        signed_in = browser.post("/ui/sign-in", data={"key": site.key})
        assert "; Secure" in signed_in.headers["Set-Cookie"]
        page = sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")
        with browser.stream("GET", f"{page}/live") as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            lines = response.iter_lines()
            assert next(lines) == "retry: 3000"
            assert http.post(f"{sink}/mass", json={"key": "k", "value": "1"}).status_code == 200
            assert next(line for line in lines if line.startswith("event"))
