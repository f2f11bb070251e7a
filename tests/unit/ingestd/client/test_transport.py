"""Proxies, certificate authorities and client certificates, with a real TLS server and a real proxy."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ingestd.client import AsyncClient, Client, ServiceClient, TransportOptions
from ingestd.client.errors import Unreachable, value_of
from ingestd.client.operations import extension
from ingestd.client.transport import UnusableCertificate
from ingestd.core.outcome import Fault
from tests.support.certificates import self_signed

_HEALTH = extension("GET", "/healthz")


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"status": "ok"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore failed handshakes, which the tests provoke."""


@pytest.fixture
def server() -> Iterator[_Quiet]:
    with _Quiet(("127.0.0.1", 0), _Healthy) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join(30)


async def test_only_configured_authorities_are_trusted_and_the_client_certificate_is_sent(
    server: _Quiet, tmp_path: Path
) -> None:
    serving = self_signed(tmp_path, "server")
    ours = self_signed(tmp_path, "client", password=b"hidden")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*serving)
    context.load_verify_locations(ours[0])
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_address[1]}"
    options = TransportOptions(
        ca_file=serving[0], client_certificate=ours[0], client_key=ours[1], client_key_password="hidden"
    )
    assert "hidden" not in repr(options)
    with Client(url, options=options) as client:
        assert client.send(_HEALTH).value == {"status": "ok"}
    async with AsyncClient(url, options=options) as awaiting:
        assert (await awaiting.send(_HEALTH)).value == {"status": "ok"}
    with Client(url) as untrusting, pytest.raises(Unreachable) as caught:
        value_of(untrusting.send(_HEALTH))
    assert caught.value.fault is Fault.TLS
    with Client(url, options=TransportOptions(ca_file=serving[0])) as anonymous, pytest.raises(Unreachable):
        value_of(anonymous.send(_HEALTH))


async def test_requests_use_only_the_configured_proxy(server: _Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = f"http://user:hidden@127.0.0.1:{server.server_address[1]}"
    options = TransportOptions(proxy=proxy)
    assert "hidden" not in repr(options)
    with Client("http://nowhere.invalid", options=options) as client:
        assert client.send(_HEALTH).value == {"status": "ok"}
    async with AsyncClient("http://nowhere.invalid", options=options) as awaiting:
        assert (await awaiting.send(_HEALTH)).value == {"status": "ok"}
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Client("http://nowhere.invalid") as direct, pytest.raises(Unreachable):
        value_of(direct.send(_HEALTH))


def test_files_that_are_no_certificates_are_rejected_with_a_sentence(tmp_path: Path) -> None:
    good, locked = self_signed(tmp_path, "locked", password=b"hidden")
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    for options, words in (
        (TransportOptions(ca_file=tmp_path / "absent.pem"), "absent.pem: No such file"),
        (TransportOptions(ca_file=empty), "trusted authorities can't be loaded from"),
        (TransportOptions(client_certificate=empty), "client certificate can't be loaded from"),
        (TransportOptions(client_certificate=good, client_key=locked), "password"),
        (TransportOptions(client_certificate=good, client_key=locked, client_key_password="x"), "password"),
    ):
        with pytest.raises(UnusableCertificate, match=words):
            Client("https://service.test", options=options)
        with pytest.raises(UnusableCertificate, match=words):
            ServiceClient(url="https://service.test", api_key="k", client_id="c", options=options)
