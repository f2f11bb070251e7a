"""A simulated workspace service with bulk mass-update (service contract M3, M8, M9, M11, G18), used as an httpx transport.

All other operations follow the rules of `document_server`. The service itself is tested separately.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from ingestd.wire.writer import Writer, parse_writer
from tests.support.document_server.routes import respond
from tests.support.document_server.store import Refusal, Store


@dataclass(slots=True, kw_only=True)
class BulkService(httpx.AsyncBaseTransport):
    """A service in memory that responds to httpx requests.

    ``bad``: whether a key is rejected. ``partial``: the service offers results for each item. ``replay``: it supports
    Idempotency-Key. ``fence``: it refuses late requests of a writer (contract M11).
    """

    store: Store = field(default_factory=lambda: Store(mass_creates=True))
    max_items: int = 5000
    max_bytes: int = 16_777_216
    real_max_bytes: int | None = None
    announce: bool = True
    partial: bool = True
    replay: bool = True
    fence: bool = True
    newest: dict[tuple[str, str], Writer] = field(default_factory=dict)
    bad: Callable[[str], bool] = lambda _: False
    requests: list[httpx.Request] = field(default_factory=list)
    responses: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        headers = {"Content-Type": "application/json"}
        if self.announce:
            headers["X-Bulk-Mass"] = f"max-items={self.max_items}, max-bytes={self.max_bytes}"
        path = request.url.raw_path.decode()
        if self.fence:
            headers["X-Writer-Fence"] = "epoch, attempt"
            if (newest := self._newer(request, path)) is not None:
                problem = {"error": "Conflict", "code": "writer_fenced"}
                return httpx.Response(409, json=problem, headers=headers | {"X-Writer": str(newest)})
        token = (path, request.headers.get("Idempotency-Key", ""))
        if self.replay and token[1] and token in self.responses:
            status, content = self.responses[token]
            return httpx.Response(status, content=content, headers=headers | {"Idempotent-Replayed": "true"})
        status, content = self._act(request, path)
        if status < 500:
            self.responses[token] = (status, content)
        return httpx.Response(status, content=content, headers=headers)

    def _newer(self, request: httpx.Request, path: str) -> Writer | None:
        """Return the newest writer of this name if the request has a lower rank; else record the request's writer."""
        writer = parse_writer(request.headers.get("X-Writer"))
        if writer is None:
            return None
        fenced = path.split("/")[3], writer.name
        newest = self.newest.get(fenced, writer)
        if writer.rank < newest.rank:
            return newest
        self.newest[fenced] = writer
        return None

    def writes(self) -> list[httpx.Request]:
        return [request for request in self.requests if request.method != "GET"]

    def _act(self, request: httpx.Request, path: str) -> tuple[int, bytes]:
        body = json.loads(request.content) if request.content else {}
        try:
            if path.partition("?")[0].endswith("/mass") and isinstance(body, list):
                status, document = self._bulk(request, path, body)
            else:
                self._refuse_bad([body, *body.get("entries", [])])
                status, document = respond(self.store, request.method, path, request.headers, body)
        except Refusal as refusal:
            problem = {"error": refusal.error, "title": refusal.error, "code": "", "requestId": "r-1"}
            return refusal.status, json.dumps(problem).encode()
        return status, b"" if document is None else json.dumps(document).encode()

    def _refuse_bad(self, items: Sequence[Mapping[str, Any]]) -> None:
        if any(self.bad(item["key"]) for item in items if "key" in item):
            raise Refusal(400, "Validation failed")

    def _bulk(self, request: httpx.Request, path: str, items: list[dict[str, Any]]) -> tuple[int, Any]:
        _, _, _, workspace, _, sink, _ = path.partition("?")[0].split("/")
        self.store.sink(workspace, sink)
        if len(request.content) > (self.real_max_bytes or self.max_bytes):
            raise Refusal(413, "Too large")
        if not 1 <= len(items) <= self.max_items:
            raise Refusal(400, "Too many items")
        if "partial=true" in path and self.partial:
            results = [self._result(workspace, sink, index, item) for index, item in enumerate(items)]
            good = sum(result["status"] == 200 for result in results)
            return 200, {"results": results, "succeeded": good, "failed": len(results) - good}
        self._refuse_bad(items)
        for item in items:
            self._store(workspace, sink, item)
        if request.headers.get("Prefer") == "return=minimal":
            counts = {"created": 0, "updated": len(items), "unchanged": 0, "deleted": 0}
            return 200, {"accepted": len(items), **counts}
        return 200, [self.store.entries[sink].get(item["key"], {"key": item["key"]}) for item in items]

    def _result(self, workspace: str, sink: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
        if self.bad(item["key"]):
            return {"index": index, "status": 400, "error": {"code": "bad_key", "detail": "This key is bad."}}
        self._store(workspace, sink, item)
        return {"index": index, "status": 200, "entry": {"key": item["key"]}}

    def _store(self, workspace: str, sink: str, item: dict[str, Any]) -> None:
        known = item["key"] in self.store.entries[sink]
        if item.get("delete"):
            if known:
                self.store.delete_entry(workspace, sink, item["key"])
        elif known:
            self.store.patch_entry(workspace, sink, item["key"], item)
        else:
            self.store.create_entry(workspace, sink, {"dataType": "scalar"} | item)
