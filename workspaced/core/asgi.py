"""The types of an ASGI application, which the service shares with every listener."""

from __future__ import annotations

from ingestd.process.http_server.asgi import ASGIApp, ClientDisconnect, Message, Receive, Scope, Send

__all__ = ["ASGIApp", "ClientDisconnect", "Message", "Receive", "Scope", "Send"]
