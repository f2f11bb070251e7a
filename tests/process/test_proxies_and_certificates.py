"""Proxy, trusted authority and client certificate, from the configuration to the service."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import self_signed
from tests.support.daemon_process import here, write_configuration
from tests.support.document_server import DocumentServer
from tests.support.intermediaries import Proxy, tls_end, tunnelling_proxy

SHOWN = {
    "ca_file": "server.pem",
    "client_certificate": "client.pem",
    "client_key": "client.key",
    "client_key_password": "hidden-word",
}


@pytest.fixture
def service() -> Iterator[DocumentServer]:
    with DocumentServer() as server:
        server.workspace("Bench")
        yield server


@pytest.fixture
def url(service: DocumentServer, tmp_path: Path) -> Iterator[str]:
    """Run the service behind TLS, which requires the client certificate ``client.pem``."""
    ours, _ = self_signed(tmp_path, "client", password=b"hidden-word")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path, "server"))
    context.load_verify_locations(ours)
    context.verify_mode = ssl.CERT_REQUIRED
    with tls_end(service.port, context) as address:
        yield address


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with tunnelling_proxy("us:hidden-pass") as proxy:
        yield proxy


def configured(folder: Path, url: str, **way: str) -> Path:
    """Write a configuration with relative paths of files beside it."""
    path = write_configuration(folder, url, {"upto": 3})
    settings = json.loads(path.read_text())
    settings["service"] |= way
    path.write_text(json.dumps(settings))
    return path


def with_password(proxy: Proxy, credentials: str) -> str:
    return proxy.url.replace("://", f"://{credentials}@")


def test_a_service_that_requires_a_certificate_is_checked_and_delivered_to_by_a_proxy(
    tmp_path: Path, service: DocumentServer, url: str, proxy: Proxy
) -> None:
    way = {**SHOWN, "proxy": with_password(proxy, "us:hidden-pass")}
    config = configured(tmp_path, url, **way)
    check = here(tmp_path, "check", "-c", str(config))
    assert (check.returncode, check.stderr) == (0, "")
    assert f"passed  service · reachable: {url} responded" in check.stdout
    sync = here(tmp_path, "sync", "-c", str(config))
    assert (sync.returncode, sync.stdout.splitlines()[-1]) == (0, "3 entries delivered, 0 pending, 0 rejected.")
    assert {key: value for key, (value, _) in service.values("Sink 0").items()} == {"0.0": "0", "0.1": "1", "0.2": "2"}
    # Entries of an existing sink are sent one by one, by another part of the client than those of a new sink.
    config = configured(tmp_path, url, **way)
    config.write_text(config.read_text().replace('"upto": 3', '"upto": 5'))
    assert here(tmp_path, "sync", "-c", str(config)).returncode == 0
    assert len(service.values("Sink 0")) == 5
    assert set(proxy.targets) == {url.removeprefix("https://")}
    assert "hidden" not in check.stdout + sync.stdout + sync.stderr


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        ({"ca_file"}, "No trusted TLS connection to the service."),
        ({"client_certificate", "client_key", "client_key_password"}, "The connection broke"),
    ],
    ids=["authority", "certificate"],
)
def test_check_reports_missing_certificates_and_passwords(
    tmp_path: Path, url: str, lacking: set[str], sentence: str
) -> None:
    config = configured(tmp_path, url, **{name: value for name, value in SHOWN.items() if name not in lacking})
    check = here(tmp_path, "check", "-c", str(config))
    assert check.returncode == 5
    assert sentence in check.stdout


def test_a_proxy_that_rejects_the_tunnel_is_reported(tmp_path: Path, url: str, proxy: Proxy) -> None:
    config = configured(tmp_path, url, **SHOWN, proxy=with_password(proxy, "us:wrong-word"))
    check = here(tmp_path, "check", "-c", str(config))
    assert check.returncode == 5
    assert "The proxy does not connect to the service." in check.stdout
    assert "wrong-word" not in check.stdout + check.stderr
    assert proxy.targets == []


@pytest.mark.parametrize(("scheme", "address"), [("http", "127.0.0.1:9"), ("https", "proxy.invalid:3128")])
def test_a_proxy_that_does_not_run_is_not_reported_as_the_service(tmp_path: Path, scheme: str, address: str) -> None:
    with DocumentServer() as running:
        url = running.url.replace("http:", f"{scheme}:")
        check = here(tmp_path, "check", "-c", str(configured(tmp_path, url, proxy=f"http://{address}")))
    assert check.returncode == 5
    assert "The proxy does not connect to the service. Check service.proxy" in check.stdout
    assert "Nothing listens" not in check.stdout


def test_an_unreadable_private_key_is_a_mistake_in_the_configuration(tmp_path: Path, url: str) -> None:
    config = configured(tmp_path, url, **SHOWN | {"client_key_password": "another-word"})
    run = here(tmp_path, "sync", "-c", str(config))
    assert run.returncode == 78
    assert "client.pem and" in run.stderr
    assert "another-word" not in run.stdout + run.stderr
