"""A client of the API of a service that runs in this process."""

from __future__ import annotations

import httpx

from workspaced.app import Application


def api_client(app: Application, key: str) -> httpx.AsyncClient:
    """Return a client that sends the key. An exception in the service becomes a response with status 500, as over a network."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"x-api-key": key, "ClientId": "tests"}
    return httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers)
