"""``workspaced serve``: run the service."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import structlog
import uvloop

from ingestd.process.hangup import defer_hangups
from ingestd.process.logs import configure_logs
from ingestd.process.notify import Notifier
from ingestd.process.standard_streams import output_failure
from ingestd.process.terminal_text import echo
from workspaced.cli.database import blobs_option, database_option
from workspaced.cli.failure import UNAVAILABLE, UNUSABLE, Failure
from workspaced.server import single
from workspaced.server.certificate import Certificate, CertificateUnusable
from workspaced.server.connections import raise_descriptor_limit
from workspaced.server.listeners import PortTaken, listen
from workspaced.settings.environment import settings_from
from workspaced.storage.port import StorageUnusable


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), required=True, help="The data folder.")
@database_option
@blobs_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="Port to listen on; 0: any free port.",
)
@click.option(
    "--admin-port",
    type=click.IntRange(0, 65535),
    envvar="WORKSPACED_ADMIN_PORT",
    help="Port of /metrics, /healthz and /readyz; 0: none.  [default: --port plus 1; none if --port is 0]",
)
@click.option(
    "--admin-host",
    default="127.0.0.1",
    show_default=True,
    envvar="WORKSPACED_ADMIN_HOST",
    help="Address to listen on for --admin-port. Requests there need no API key.",
)
@click.option(
    "--tls-certificate",
    type=click.Path(path_type=Path),
    envvar="WORKSPACED_TLS_CERTIFICATE",
    help="PEM file of the certificate and its intermediate certificates: serve https. SIGHUP reads it again.",
)
@click.option(
    "--tls-key",
    type=click.Path(path_type=Path),
    envvar="WORKSPACED_TLS_KEY",
    help="PEM file of the certificate's private key, without a password.",
)
@click.option(
    "--dev",
    is_flag=True,
    help="For development: log every request; webhooks may use plain http and the addresses of this machine.",
)
def serve(
    data: Path,
    database: str,
    blobs: str,
    *,
    host: str,
    port: int,
    admin_port: int | None,
    admin_host: str,
    tls_certificate: Path | None,
    tls_key: Path | None,
    dev: bool,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Prints the URL when it accepts requests."""
    configure_logs(level="debug" if dev else "info")
    if tls_certificate is not None:
        defer_hangups()  # a SIGHUP during the start (a renewed certificate) must not end the service
    try:
        settings = settings_from(os.environ, data=data, database=database, blobs=blobs, dev=dev)
        certificate = _certificate(tls_certificate, tls_key)
    except (ValueError, CertificateUnusable) as error:
        raise Failure(str(error), UNUSABLE) from error
    if admin_port is None:
        admin_port = port + 1 if 0 < port < 65535 else 0
    raise_descriptor_limit()
    notifier = Notifier.from_environment(
        on_failure=lambda reason: structlog.get_logger().warning("manager_unreachable", reason=reason)
    )
    try:
        with _admin(admin_host, admin_port) as admin, listen(host, port) as listener:
            uvloop.run(
                single.serve(
                    settings,
                    listener,
                    admin=admin,
                    certificate=certificate,
                    notifier=notifier,
                    announce=_announce,
                )
            )
    except PortTaken as error:
        raise Failure(str(error), UNAVAILABLE) from error
    except StorageUnusable as error:
        raise Failure(str(error), UNUSABLE) from error


def _certificate(certificate: Path | None, key: Path | None) -> Certificate | None:
    if certificate and key:
        return Certificate(certificate, key)
    if certificate or key:
        given, missing = ("--tls-certificate", "--tls-key") if certificate else ("--tls-key", "--tls-certificate")
        raise CertificateUnusable(f"TLS needs a certificate and its key, but {given} is given without {missing}.")
    return None


def _announce(url: str) -> None:
    """Print the URL. If standard output can't be written, the service continues."""
    try:
        echo(url)
    except OSError:
        if output_failure() is None:
            raise


@contextmanager
def _admin(host: str, port: int) -> Iterator[socket.socket | None]:
    if not port:
        yield None
        return
    with listen(host, port, option="--admin-port") as listener:
        yield listener
