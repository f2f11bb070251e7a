"""The types of an ASGI application; the listeners of `ingestd` use the same types."""

from __future__ import annotations

from ingestd.process.http_server.asgi import ASGIApp, ClientDisconnect, Message, Receive, Scope, Send

__all__ = ["ASGIApp", "ClientDisconnect", "Message", "Receive", "Scope", "Send"]
