"""The workspace service on a loopback port, in a thread of the test, with a record of all requests."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn

from workspaced.app import Application, create_app
from workspaced.core.asgi import ASGIApp, Message, Receive, Scope, Send
from workspaced.security import key_store as access
from workspaced.security.egress.rules import EgressRules
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

DEADLINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request as it arrived, and the status of its response. ``path``: unchanged, with the query."""

    method: str
    path: str
    body: bytes
    status: int

    @property
    def writes(self) -> bool:
        return self.method not in {"GET", "HEAD", "OPTIONS"}


class _Recorder:
    """ASGI middleware that records each request."""

    def __init__(self, app: ASGIApp, requests: list[Recorded]) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        status = 0

        async def copied() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["raw_path"].decode() + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        try:
            await self._app(scope, copied, noted)
        finally:
            request = Recorded(method=scope["method"], path=path, body=bytes(body), status=status)
            self._requests.append(request)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self.listening = threading.Event()
        self._app = app

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        async with self._app.started():
            await super().serve(sockets=sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.listening.set()


class RecordedWorkspaced:
    """A context manager with the same methods for tests as `DocumentServer`."""

    def __init__(self, folder: Path, *, limits: Limits | None = None, egress: EgressRules | None = None) -> None:
        """``limits``: by default there is no rate limit, because a test may exceed it within a second."""
        settings = WorkspacedSettings(
            data=folder, limits=limits or Limits(requests_per_minute=0), egress=egress or EgressRules()
        )
        self.api_key = transact(
            settings.database,
            lambda tx: access.create_key(
                tx, name="svc:test", role="owner", now=time.time_ns() // 1_000_000, expires_at=None, workspace_id=""
            ),
        )
        self.requests: list[Recorded] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = create_app(settings)
        recorder = _Recorder(app, self.requests)
        config = uvicorn.Config(recorder, lifespan="off", log_config=None, access_log=False, ws="none")
        self._server = _Server(config, app)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="workspaced", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._url = self.url
        self._thread.start()
        assert self._server.listening.wait(DEADLINE_SECONDS), "workspaced did not start"
        headers: Mapping[str, str] = {"x-api-key": self.api_key, "ClientId": "test"}
        self._http = httpx.Client(base_url=self._url, headers=headers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
        self._server.should_exit = True
        self._thread.join(DEADLINE_SECONDS)
        self._socket.close()

    def workspace(self, label: str = "Bench") -> str:
        """Create a workspace; return its id."""
        response = self._http.post("/v1/workspace", json={"label": label}).raise_for_status()
        self.forget_requests()
        return str(response.json()["id"])

    def write_configuration(self, folder: Path, pipeline: Mapping[str, Any], *, label: str) -> None:
        """Write ``ingestd.yaml`` with one pipeline that delivers to the sink ``label`` of a new workspace."""
        settings = {
            "service": {"url": self.url, "api_key": self.api_key},
            "state": "ingestd.db",
            "pipelines": [{**pipeline, "sink": {"workspace": self.workspace("Rover"), "label": label}}],
        }
        (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is valid YAML.

    def plain_values(self, label: str) -> dict[str, str | None]:
        """Return the values of the only sink with this label, without data types."""
        return {key: value for key, (value, _) in self.values(label).items()}

    def writes(self) -> list[Recorded]:
        """Return the requests with a method that can change something."""
        return [request for request in self.requests if request.writes]

    def accepted(self) -> list[Recorded]:
        """Return the writes with a successful response."""
        return [request for request in self.writes() if request.status < 300]

    def forget_requests(self) -> None:
        self.requests.clear()

    def values(self, label: str) -> dict[str, tuple[str | None, str]]:
        """Return (value, data type) by key of the only sink with this label."""
        paths = [
            f"/v1/workspace/{workspace['id']}/data-sink/{sink['id']}"
            for workspace in self._http.get("/v1/workspace").raise_for_status().json()
            for sink in self._http.get(f"/v1/workspace/{workspace['id']}/data-sink/list").raise_for_status().json()
            if sink["label"] == label
        ]
        (path,) = paths
        entries = self._http.get(path).raise_for_status().json()["entries"]
        return {entry["key"]: (entry["value"], entry["dataType"]) for entry in entries}
