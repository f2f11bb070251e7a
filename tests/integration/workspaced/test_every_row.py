"""Rules for every operation, tested for each operation of the table (contract G11, G14, G15, G21)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.sample_workspace import SampleWorkspace, create_sample_workspace
from workspaced.app import create_app
from workspaced.http.operations import Operation
from workspaced.settings.model import WorkspacedSettings

_SETTINGS = WorkspacedSettings(data=Path("unused"))
OPERATIONS: tuple[Operation, ...] = create_app(_SETTINGS).operations
# The workspace of the examples, and the names in paths and queries of the members of a `SampleWorkspace`.
_EXAMPLE_WORKSPACE = "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10"
_QUERIES = {"from": "2020-01-01T00:00:00Z", "fileName": "x.csv", "expires": "9", "signature": "x"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A valid request."""

    operation: Operation
    path: str
    query: dict[str, str]
    body: bytes | None


def request_to(
    operation: Operation, sample: SampleWorkspace, *, api_key: str = "00000000", upload: str = ""
) -> Request:
    """Return a request to that operation, for the resources of the sample; ``api_key`` is the id of a key."""
    names = {
        "workspace": sample.workspace,
        "sink": sample.sink,
        "block": sample.block,
        "webhook": sample.webhook,
        "delivery": sample.delivery,
        "file": sample.file,
        "upload": upload or sample.file,
        "writer": "bench-3",
    }
    names["key"] = api_key if operation.path.startswith("/v1/api-keys") else sample.key
    query = {**_QUERIES, "workspaceId": sample.workspace}
    needed = {"workspaceId", "fileName"}  # a new file needs a name
    wanted = {parameter.name for parameter in operation.query if parameter.required or parameter.name in needed}
    body: Any = operation.body.example if operation.body else None
    return Request(
        operation=operation,
        path=operation.path.format(**names),
        query={name: query[name] for name in sorted(wanted)},
        body=None if body is None else json.dumps(body).replace(_EXAMPLE_WORKSPACE, sample.workspace).encode(),
    )


ROWS_OF_THE_FIXED_BODY = ("data_sinks.list", "data_sinks.list_whole", "data_sinks.update", "data_sinks.mass")


async def test_a_key_of_one_workspace_gets_nothing_of_another_by_any_operation(
    http: httpx.AsyncClient, make_key: Any
) -> None:
    # contract G15
    theirs = await create_sample_workspace(http, tried=True)
    own = (await http.post("/v1/workspace", json={"label": "Own"})).json()["id"]
    foreign = {"x-api-key": make_key("svc:other", workspace_id=own), "ClientId": "other"}
    before = await _state(http, theirs)
    owners_key = (await http.get("/v1/api-keys")).json()[0]["id"]
    got: list[str] = []
    for operation in OPERATIONS:
        if operation.scope is None and operation.take is None:
            continue  # open to every caller, without data of callers
        request = request_to(operation, theirs, api_key=owners_key)
        response = await _sent(http, request, foreign)
        # A lease is in no workspace: it belongs to the caller who takes it first (test_writer_leases.py).
        named = "{" in operation.path.replace("{writer}", "") or "workspaceId" in request.query
        if named and response.status_code not in {403, 404}:
            got.append(f"{operation.name}: {response.status_code} {response.text[:200]}")
        if any(known in response.text for known in theirs.ids) and response.is_success:
            got.append(f"{operation.name} shows {response.text[:200]}")
    assert got == []
    assert await _state(http, theirs) == before


async def test_the_same_requests_of_the_owner_succeed(http: httpx.AsyncClient) -> None:
    """Show that the rejections above are caused by the key, and not by the requests."""
    kept = await create_sample_workspace(http, tried=True)
    # What is read or deleted at the end was made before.
    for operation in sorted(OPERATIONS, key=lambda one: (one.method == "DELETE", one.name == "writer_leases.get")):
        if operation.name in {"cloud_storage.receive", "cloud_storage.upload_complete"}:
            continue  # their links are signed; the tests of cloud storage use them
        sample = await create_sample_workspace(http) if operation.method == "DELETE" else kept
        made = (await http.post("/v1/api-keys", json={"name": "svc:other", "role": "reader"})).json()["id"]
        response = await _sent(http, request_to(operation, sample, api_key=made), {})
        assert response.is_success, (operation.name, response.text)


async def test_the_four_rows_with_a_documented_400_return_exactly_that(http: httpx.AsyncClient) -> None:
    # contract G14
    sample = await create_sample_workspace(http)
    table = {operation.name: operation for operation in OPERATIONS}
    for name in ROWS_OF_THE_FIXED_BODY:
        operation = table[name]
        assert operation.document_form
        for wrong in _wrong(request_to(operation, sample)):
            response = await http.request(operation.method, **wrong)
            assert (response.status_code, response.content) == (400, b'{"error":"Invalid request"}'), (name, wrong)
            assert response.headers["Content-Type"] == "application/json"
            assert response.headers["X-Error-Code"]
            accept = {"Accept": "application/problem+json", **wrong.pop("headers", {})}
            problem = await http.request(operation.method, headers=accept, **wrong)
            assert (problem.status_code, problem.headers["Content-Type"]) == (400, "application/problem+json")
            assert problem.json()["code"] == response.headers["X-Error-Code"]


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.success.content is None],
    ids=lambda operation: operation.name,
)
async def test_a_204_has_zero_bytes_and_no_content_type(http: httpx.AsyncClient, operation: Operation) -> None:
    # contract G11
    response = await _sent(http, request_to(operation, await create_sample_workspace(http)), {})
    assert response.status_code == operation.success.status
    assert (response.content, response.headers["Content-Length"]) == (b"", "0")
    assert "Content-Type" not in response.headers


async def test_every_rejection_of_every_operation_has_a_json_body_with_error_and_its_request_id(
    http: httpx.AsyncClient,
) -> None:
    # contract G14
    sample = await create_sample_workspace(http, tried=True)
    seen = set()
    for operation in OPERATIONS:
        for number, more in enumerate(_refused(request_to(operation, sample))):
            headers = {"X-Request-Id": f"{operation.name}-{number}", **more.pop("headers", {})}
            response = await http.request(more.pop("method", operation.method), headers=headers, **more)
            if not response.is_error:
                continue
            seen.add(response.status_code)
            body = response.json()
            assert isinstance(body["error"], str), (operation.name, response.text)
            assert response.headers["X-Request-Id"] == headers["X-Request-Id"]
            assert response.headers["X-Error-Code"]
            if response.headers["Content-Type"] == "application/problem+json":
                assert (body["status"], body["error"]) == (response.status_code, body["title"])
                assert (body["requestId"], body["instance"]) == (
                    headers["X-Request-Id"],
                    response.request.url.raw_path.partition(b"?")[0].decode(),
                )
    assert seen >= {400, 401, 403, 404, 405, 412, 413, 415}


async def _sent(http: httpx.AsyncClient, request: Request, headers: dict[str, str]) -> httpx.Response:
    return await http.request(
        request.operation.method, request.path, params=request.query, content=request.body, headers=headers
    )


async def _state(http: httpx.AsyncClient, sample: SampleWorkspace) -> list[Any]:
    base = f"/v1/workspace/{sample.workspace}"
    paths = (base, f"{base}/data-sink", f"{base}/blocks", f"/v1/webhooks/{sample.webhook}")
    files = (f"/v1/cloud-storage/{sample.file}", f"/v1/cloud-storage/metadata/{sample.file}")
    state = [(await http.get(path)).json() for path in (*paths, *files)]
    for moving in ("conversion", "updatedAt", "updatedBy"):  # a conversion runs concurrently
        state[len(paths)].pop(moving)
    return state


def _wrong(request: Request) -> Iterator[dict[str, Any]]:
    """Return requests to the same operation with one mistake each."""
    sound: dict[str, Any] = {"url": request.path, "params": request.query, "content": request.body}
    if request.operation.method == "GET":
        for query in ("take=0", "take=x", "skip=-1", "sortOrder=UP", "sortedBy=colour"):
            yield {"url": f"{request.path}?{query}"}
        return
    for content in (b"", b"{", b"[]", b'{"label":1,"key":1}', b'{"label":"\\u0000"}', b'{"label":NaN}'):
        yield {**sound, "content": content}
    yield {**sound, "headers": {"ClientId": "no spaces"}}


def _refused(request: Request) -> Iterator[dict[str, Any]]:
    """Return requests to the same operation. Most of them are rejected, each for another reason."""
    sound: dict[str, Any] = {"url": request.path, "params": request.query, "content": request.body}
    yield {**sound, "headers": {"x-api-key": "edw_wrong"}}
    yield {**sound, "method": "TRACE"}
    yield {**sound, "url": f"{request.path}/"}
    yield {**sound, "params": {**request.query, "take": "\0"}}
    yield {**sound, "headers": {"If-Match": '"0"', "If-Range": "x"}}
    yield {**sound, "headers": {"Idempotency-Key": '"'}}
    yield {**sound, "content": b"{"}
    yield {**sound, "content": b"x", "headers": {"Content-Type": "text/plain; charset=latin-1"}}
    if request.operation.body_bytes and request.operation.take is None:
        yield {**sound, "content": b" " * (request.operation.body_bytes + 1)}
    absent = "9c5b94b1-35ad-49bb-b118-8e8fc24abf80"
    for segment in request.path.split("/"):
        if len(segment) == len(absent):
            yield {**sound, "url": request.path.replace(segment, absent)}
