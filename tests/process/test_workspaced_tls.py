"""``workspaced serve --tls-certificate FILE --tls-key FILE``: HTTPS, a renewed certificate, and files that can't be used."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import ssl
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.support.certificates import self_signed
from tests.support.free_port import free_port
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key
from workspaced.cli import main
from workspaced.server.certificate import Certificate


def served_certificate(service: WorkspaceService) -> str:
    host, port = service.url.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=DEADLINE_SECONDS)


def test_it_serves_https_with_the_newest_certificate_that_can_be_used(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path, "first")
    renewed, renewed_key = self_signed(tmp_path, "second")
    secrets = [file.read_text() for file in (key, renewed_key)]
    owner, admin = new_key(tmp_path / "data"), free_port()
    environment = {"WORKSPACED_TLS_KEY": str(key), "WORKSPACED_HEAD_SECONDS": "1"}
    options = ("--admin-port", str(admin), "--tls-certificate", str(certificate))
    with WorkspaceService(tmp_path / "data", *options, environment=environment) as service:
        assert service.url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=certificate)
        with httpx.Client(base_url=service.url, verify=context, headers={"x-api-key": owner}) as client:
            assert client.post("/v1/workspace", json={"label": "w"}).status_code == 201
            shutil.copy(renewed, certificate)
            service.process.send_signal(signal.SIGHUP)
            assert (
                "does not belong to the certificate"
                in service.wait_for_event(event="certificate_not_reloaded")["reason"]
            )
            assert served_certificate(service) != renewed.read_text()
            shutil.copy(renewed_key, key)
            service.process.send_signal(signal.SIGHUP)
            service.wait_for_event(event="certificate_reloaded")
            assert served_certificate(service) == renewed.read_text()
            assert client.get("/v1/workspace").status_code == 200  # the connection with the former certificate goes on
        service.wait_for_event(event="certificate_expires", level="warning")  # within 14 days
        host, port = service.url.removeprefix("https://").split(":")
        wire = socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS)
        with wire, contextlib.suppress(ConnectionResetError):
            assert wire.recv(1) == b""
        assert 'reason="head_timeout"} 1.0' in httpx.get(f"http://127.0.0.1:{admin}/metrics").text
        assert service.stop() == 0
        assert not any(line in service.log for secret in secrets for line in secret.splitlines()[1:-1])


@pytest.mark.parametrize(
    ("certificate", "key", "sentence"),
    [
        ("a.pem", None, "TLS needs a certificate and its key, but --tls-certificate is given without --tls-key."),
        (None, "a.key", "TLS needs a certificate and its key, but --tls-key is given without --tls-certificate."),
        ("none.pem", "a.key", r"The file \S+/none.pem can't be read \(No such file or directory\)."),
        ("a.pem", "none.key", r"The file \S+/none.key can't be read \(No such file or directory\)."),
        ("a.key", "a.key", r"The file \S+/a.key has no certificate in PEM format."),
        ("a.pem", "a.pem", r"The file \S+/a.pem has no private key in PEM format."),
        ("a.pem", "b.key", r"The key in \S+/b.key does not belong to the certificate in \S+/a.pem."),
        ("c.pem", "c.key", r"The key in \S+/c.key is encrypted. Give a key without a password, with mode 0600."),
    ],
)
def test_files_that_cannot_be_used_end_the_start(
    tmp_path: Path, certificate: str | None, key: str | None, sentence: str
) -> None:
    for name, password in (("a", None), ("b", None), ("c", b"hidden-word")):
        self_signed(tmp_path, name, password)
    words = ["serve", "--data", str(tmp_path / "data"), "--port", "0"]
    for option, file in (("--tls-certificate", certificate), ("--tls-key", key)):
        words += [option, str(tmp_path / file)] if file else []
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 78
    assert re.fullmatch(f"workspaced: {sentence}\n", result.stderr)


def test_tls_1_2_is_the_oldest_version(tmp_path: Path) -> None:
    assert Certificate(*self_signed(tmp_path, "a")).context.minimum_version is ssl.TLSVersion.TLSv1_2
