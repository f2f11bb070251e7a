"""Detects the protocol of a server that does not respond like a broker."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

from connectors.mqtt.options import MqttOptions

_SECONDS = 0.7
"""The time limit of each probe. All probes together must take less than the 2 seconds in which a source must stop."""
_REQUEST = b"HEAD / HTTP/1.0\r\n\r\n"


def listener_sentence(options: MqttOptions) -> str:
    """Return a sentence if the server speaks another protocol; empty if the probes do not show this.

    Of the settings, the probes send only the host name.
    """
    speaks_tls = _responds(options, is_secure=True, request=b"")
    if _responds(options, is_secure=speaks_tls, request=_REQUEST, response=b"HTTP/"):
        return f"At {options.address} an HTTP server responds, and not a broker. Correct the port in url."
    if speaks_tls and not options.is_secure:
        return f"{options.address} expects TLS. Write mqtts:// in url, or use the port without TLS."
    if options.is_secure and not speaks_tls:
        return f"{options.address} does not speak TLS. Write mqtt:// in url, or use the port with TLS."
    return ""


def _responds(options: MqttOptions, *, is_secure: bool, request: bytes, response: bytes = b"") -> bool:
    """Return whether a connection can be made and the response to ``request`` begins with ``response``."""
    with suppress(OSError), socket.create_connection((options.host, options.port), timeout=_SECONDS) as plain:
        if not is_secure:
            return _exchange(plain, request, response)
        with _any_certificate().wrap_socket(plain, server_hostname=options.host) as secure:
            return _exchange(secure, request, response)
    return False


def _exchange(connection: socket.socket, request: bytes, response: bytes) -> bool:
    connection.sendall(request)
    received = b""
    while len(received) < len(response) and (more := connection.recv(len(response) - len(received))):
        received += more
    return received == response


def _any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
