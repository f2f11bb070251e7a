"""What to do after a failure of TLS, in the sentences of connectors that speak HTTP."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from connectors.http import HttpConnector, HttpOptions
from connectors.remote import RemoteConnector, RemoteOptions
from ingestd.sdk import Connector, SourceContext, Verifies
from tests.support.certificates import self_signed

Open = Callable[[str, Path], Connector]


def http(url: str, base: Path) -> HttpConnector:
    options = {"url": f"{url}/parts", "ca_file": base / "ca.pem" if (base / "ca.pem").exists() else None}
    return HttpConnector(HttpOptions.model_validate(options), SourceContext(pipeline="t", base=base, now=lambda: 0.0))


def s3(url: str, base: Path) -> RemoteConnector:
    options = {"url": "s3://bench/drop", "endpoint": url, "access_key": "a", "secret_key": "b", "timeout_seconds": 0.2}
    context = SourceContext(pipeline="t", base=base, now=lambda: 0.0)
    return RemoteConnector(RemoteOptions.model_validate(options), context)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Print nothing: a client that does not trust the server goes away."""


@contextmanager
def serving(context: ssl.SSLContext | None) -> Iterator[int]:
    with _Server(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Serve HTTPS with a self-signed certificate for 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path, "server"))
    with serving(context) as found:
        yield found


@pytest.fixture
def plain_port() -> Iterator[int]:
    """Serve HTTP without TLS."""
    with serving(None) as found:
        yield found


def failure(connector: Connector) -> str:
    assert isinstance(connector, Verifies)
    sentence = next(step.sentence for step in connector.verify() if step.outcome == "failed")
    connector.close()
    return sentence


@pytest.mark.parametrize(("opened", "remedy"), [(http, "name its file as ca_file"), (s3, "SSL_CERT_FILE")])
def test_an_untrusted_certificate_names_what_to_do(opened: Open, remedy: str, port: int, tmp_path: Path) -> None:
    sentence = failure(opened(f"https://127.0.0.1:{port}", tmp_path))
    assert "its certificate is not trusted" in sentence
    assert remedy in sentence


@pytest.mark.parametrize("opened", [http, s3])
def test_a_port_without_tls_names_what_to_do(opened: Open, plain_port: int, tmp_path: Path) -> None:
    assert "it does not speak TLS" in failure(opened(f"https://127.0.0.1:{plain_port}", tmp_path))


def test_a_certificate_of_another_name_names_what_to_do(port: int, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes((tmp_path / "server.pem").read_bytes())
    sentence = failure(http(f"https://localhost:{port}", tmp_path))
    assert "its certificate is for another name" in sentence
    assert "Use that name in the address" in sentence
