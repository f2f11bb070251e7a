"""The HTTP server for connectors: serves an ASGI application, with limits for sizes, times and connections."""

from __future__ import annotations

from ingestd.process.http_server.asgi import ClientDisconnect, Receive, Scope, Send
from ingestd.process.http_server.limits import ConnectionLimits
from ingestd.process.http_server.messages import BodyTooLarge, read_body, send_head
from ingestd.process.http_server.registry import Connections
from ingestd.process.http_server.server import HttpServer, listening
from ingestd.process.request_headers import RepeatedHeader, single_values

__all__ = [
    "BodyTooLarge",
    "ClientDisconnect",
    "ConnectionLimits",
    "Connections",
    "HttpServer",
    "Receive",
    "RepeatedHeader",
    "Scope",
    "Send",
    "listening",
    "read_body",
    "send_head",
    "single_values",
]
