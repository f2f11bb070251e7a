"""Each success, failure and event of the 32 operations of the interface document (contract G12, G13, G22, H7).

A failure changes nothing, so one sample serves all of them, and is compared at the
end.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import msgspec
import pytest

from ingestd.process.postgres_address import postgres_address
from tests.support.api_client import api_client
from tests.support.interface_rows import NO_CONTENT, ROWS, Row
from tests.support.sample_workspace import SampleWorkspace, create_sample_workspace
from workspaced.app import Application, running
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

pytestmark = pytest.mark.both_databases

ABSENT: Final = "9c5b94b1-35ad-49bb-b118-8e8fc24abf80"
UNSAFE: Final = "http://127.0.0.1/hook"

# The last column of the table. V: 400. V*: 400 in the document's words. N: 404, or (files) 403. K: ClientId.
# T: 413 and 415. I: 412. Y: 422 for another body under the key.
MARKS: Final = {
    "DS1": "N 304", "DS2": "V* N", "DS3": "V* N", "DS4": "N V 304", "DS5": "K V T Y 409", "DS6": "V* K T N I",
    "DS7": "K N I", "DS8": "K V T N Y 409", "DS9": "K V T N I", "DS10": "K N I", "DS11": "V* T Y N 409",
    "BL1": "V N", "BL2": "V T Y 409 422", "BL3": "N 304", "BL4": "N I 409", "BL5": "V T N I 422",
    "WS1": "V", "WS2": "V T Y 409", "WS3": "V N 304", "WS4": "V N I", "WS5": "V T N I 422",
    "CS1": "V N I", "CS2": "V T N I", "CS3": "N 304", "CS4": "V T N I", "CS5": "V T Y N",
    "WH1": "V", "WH2": "V T Y 409 422", "WH3": "N 304", "WH4": "N I", "WH5": "V T N I 422", "WH6": "V N Y",
}  # fmt: skip

# Well-formed values that are impossible: the body, or the query, and the problem's code.
STATES: Final[dict[str, tuple[tuple[dict[str, Any], int, str], ...]]] = {
    "DS5": (({"json": {"label": "x", "id": "{sink}"}}, 409, "id_in_use"),),
    "DS8": (
        ({"json": {"key": "{key}", "dataType": "scalar"}}, 409, "duplicate_key"),
        ({"json": {"key": "other", "dataType": "scalar", "id": "{entry}"}}, 409, "id_in_use"),
    ),
    "DS11": (({"json": {"key": "other", "value": "1"}, "params": {"create": "false"}}, 404, "entry_not_found"),),
    "BL2": (
        ({"json": {"workspace": ABSENT}}, 400, "workspace_mismatch"),
        ({"json": {"workspace": "{workspace}", "id": "{block}"}}, 409, "id_in_use"),
        ({"json": {"workspace": "{workspace}", "parentBlock": ABSENT}}, 422, "parent_not_found"),
        ({"json": {"workspace": "{workspace}", "id": ABSENT, "parentBlock": ABSENT}}, 422, "cycle"),
    ),
    "BL4": (({"path": "/v1/workspace/{workspace}/blocks/{root}"}, 409, "root_block"),),
    "BL5": (
        ({"json": {"parentBlock": "{block}"}}, 422, "cycle"),
        ({"json": {"parentBlock": ABSENT}}, 422, "parent_not_found"),
    ),
    "WS2": (({"json": {"label": "x", "id": "{workspace}"}}, 409, "id_in_use"),),
    "WS5": (({"json": {"rootBlock": {"id": ABSENT}}}, 422, "root_block_not_found"),),
    "WH2": (
        ({"json": {"url": "https://hooks.example/", "id": "{webhook}"}}, 409, "id_in_use"),
        ({"json": {"url": UNSAFE}}, 422, "unsafe_url"),
    ),
    "WH5": (({"json": {"url": UNSAFE}}, 422, "unsafe_url"),),
}

# Rows that only no body, or the one of `ROWS`, changes.
CHANGING: Final = {"CS2": {"fileName": "other.bin"}}
EVENTS: Final = {
    "DS5": ["data_sink.created"],
    "DS6": ["data_sink.updated"],
    "DS7": ["data_sink.deleted"],
    "DS8": ["data_sink.entry.created"],
    "DS9": ["data_sink.entry.updated"],
    "DS10": ["data_sink.entry.deleted"],
    "DS11": ["data_sink.entry.created"],
    "BL2": ["block.created"],
    "BL4": ["block.deleted"],
    "BL5": ["block.updated"],
    "WS2": ["workspace.created", "block.created"],
    "WS4": ["workspace.deleted"],
    "WS5": ["block.updated", "block.updated", "workspace.updated"],  # the new root, and the old one below it
    "CS1": ["cloud_storage.file.deleted"],
    "CS2": ["cloud_storage.file.updated"],
    "CS4": ["cloud_storage.metadata.updated"],
    "CS5": ["cloud_storage.conversion.started"],
}


def test_every_row_of_the_document_has_its_failures() -> None:
    assert set(MARKS) == {row.id for row in ROWS}
    assert len(MARKS) == 32
    assert {row for row, marks in MARKS.items() if {"409", "422"} & set(marks.split())} <= set(STATES)


async def test_a_client_made_from_the_tables_of_the_document_decodes_each_success(http: httpx.AsyncClient) -> None:
    # contract G22
    kept = await create_sample_workspace(http)
    for row in ROWS:
        sample = await create_sample_workspace(http) if row.method == "DELETE" else kept
        response = await http.request(row.method, **_sound(row, sample))
        assert response.status_code == row.status, (row.id, response.text)
        if row.shape is NO_CONTENT:
            assert (response.content, response.headers["Content-Length"]) == (b"", "0"), row.id
            assert "Content-Type" not in response.headers, row.id
            continue
        assert response.headers["Content-Type"] == "application/json", row.id
        decoded = msgspec.json.decode(response.content, type=row.shape, strict=True)
        assert decoded or row.id == "CS3"
        assert row.id != "DS3" or "entries" not in response.json()[0]


async def test_the_failures_common_to_all_rows(http: httpx.AsyncClient, transport: httpx.ASGITransport) -> None:
    # contract G13
    sample = await create_sample_workspace(http)
    made = await http.post("/v1/api-keys", json={"name": "svc:narrow", "role": "owner", "scopes": ["audit:read"]})
    narrow = {"x-api-key": made.json()["key"]}
    got = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as anonymous:
        for row in ROWS:
            refused = await http.request("TRACE", _path(row, sample))
            got[row.id] = (
                (await anonymous.request(row.method, **_sound(row, sample))).status_code,
                (await http.request(row.method, **_sound(row, sample, headers=narrow))).status_code,
                refused.status_code,
                row.method in refused.headers["Allow"].split(", "),
            )
    assert got == {row.id: (401, 403, 405, True) for row in ROWS}


async def test_each_failure_of_each_row(http: httpx.AsyncClient, settings: WorkspacedSettings) -> None:
    # contract G13
    sample = await create_sample_workspace(http)
    await _converted(http, sample)  # otherwise the file's ETag would change during the test
    before = await _state(http, sample)
    wrong: list[tuple[object, ...]] = []
    for row in ROWS:
        for mark in MARKS[row.id].split():
            for attempt, wanted in _attempts(row, mark, sample, settings.limits):
                response = await http.request(row.method, **attempt)
                if mark == "304":
                    again = {**attempt["headers"], "If-None-Match": response.headers["ETag"]}
                    response = await http.request(row.method, **{**attempt, "headers": again})
                said = response.headers.get("X-Error-Code", "")
                if response.status_code != wanted[0] or (wanted[1] and said != wanted[1]):
                    wrong.append((row.id, mark, wanted, response.status_code, said, response.text[:200]))
                if mark == "V*" and response.content != b'{"error":"Invalid request"}':
                    wrong.append((row.id, mark, response.text[:200]))
    assert wrong == []
    assert await _state(http, sample) == before


async def test_the_same_idempotency_key_with_another_body_is_422_and_nothing_is_applied(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    for row in ROWS:
        if "Y" not in MARKS[row.id].split():
            continue
        async with _service(settings, make_key()) as (http, _):
            sample = await create_sample_workspace(http)
            headers = {"Idempotency-Key": f'"{row.id}"'}
            first = await http.request(row.method, **_sound(row, sample, headers=headers))
            assert first.is_success, (row.id, first.text)
            body = {**(_filled(row.json, sample) or {}), "description": "another body", "force": False}
            second = await http.request(row.method, **{**_sound(row, sample, headers=headers), "json": body})
            assert second.status_code == 422, (row.id, second.text)


async def test_every_row_is_429_for_a_caller_beyond_its_rate(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    limits = dataclasses.replace(
        settings.limits, requests_per_minute=1, request_burst=10
    )  # no token is refilled meanwhile
    async with _service(dataclasses.replace(settings, limits=limits), make_key()) as (http, _):
        sample = await create_sample_workspace(http)
        for _ in range(10):
            await http.get("/v1/workspace")
        for row in ROWS:
            response = await http.request(row.method, **_sound(row, sample))
            assert (response.status_code, response.json()["code"]) == (429, "rate_limited"), row.id
            assert int(response.headers["Retry-After"]) > 0


async def test_every_row_is_503_while_the_database_is_unavailable(settings: WorkspacedSettings) -> None:
    away = dataclasses.replace(settings, postgres=postgres_address("postgresql://unknown@127.0.0.1:1/nowhere"))
    sample = SampleWorkspace(**{field.name: ABSENT for field in dataclasses.fields(SampleWorkspace)})
    async with _service(away, "edw_any") as (http, _):
        for row in ROWS:
            response = await http.request(row.method, **_sound(row, sample))
            assert (response.status_code, response.headers["Retry-After"]) == (503, "5"), row.id


@pytest.mark.parametrize(
    ("row", "quota"),
    [
        ("DS5", "sinks_per_workspace"),
        ("DS8", "entries_per_sink"),
        ("DS11", "entries_per_sink"),
        ("BL2", "blocks_per_workspace"),
        ("WH2", "webhooks_per_owner"),
    ],
)
async def test_an_exhausted_quota_is_409(
    settings: WorkspacedSettings, make_key: Callable[..., str], row: str, quota: str
) -> None:
    # contract G35
    (the_row,) = (one for one in ROWS if one.id == row)
    full = 2 if quota == "blocks_per_workspace" else 1
    limits = dataclasses.replace(settings.limits, **{quota: full})
    async with _service(dataclasses.replace(settings, limits=limits), make_key()) as (http, _):
        sample = await create_sample_workspace(http)
        response = await http.request(the_row.method, **_sound(the_row, sample))
        assert (response.status_code, response.json()["code"]) == (409, "quota_exceeded")


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in EVENTS], ids=lambda row: row.id)
async def test_each_row_emits_its_events_and_no_others(
    http: httpx.AsyncClient, settings: WorkspacedSettings, row: Row
) -> None:
    # contract H7
    sample = await create_sample_workspace(http)
    if row.id == "CS5":
        await _converted(http, sample)
    await _subscribe(http, sample)
    earlier = len(_reported(settings))
    sound = _sound(row, sample)
    if row.id in CHANGING:
        sound["json"] = CHANGING[row.id]
    response = await http.request(row.method, **sound)
    assert response.is_success, response.text
    if row.id == "CS5":
        await _converted(http, sample)
    reported = _reported(settings)[earlier:]
    assert [one for one in reported if "conversion" not in one or one in EVENTS[row.id]] == EVENTS[row.id]


async def test_the_other_rows_emit_no_event(http: httpx.AsyncClient, settings: WorkspacedSettings) -> None:
    sample = await create_sample_workspace(http)
    await _subscribe(http, sample)
    for row in sorted(ROWS, key=lambda row: row.id == "WH4"):  # it deletes what the other rows need
        if row.id not in EVENTS:
            response = await http.request(row.method, **_sound(row, sample))
            assert response.is_success, (row.id, response.text)
    assert [
        one for one in _reported(settings) if "conversion" not in one
    ] == []  # the event of the file is emitted independently


async def _subscribe(http: httpx.AsyncClient, sample: SampleWorkspace) -> None:
    everything = {"dataEvents": ["data_sink.*", "block.*", "workspace.*", "cloud_storage.*"]}
    assert (await http.patch(f"/v1/webhooks/{sample.webhook}", json=everything)).is_success


@asynccontextmanager
async def _service(settings: WorkspacedSettings, key: str) -> AsyncIterator[tuple[httpx.AsyncClient, Application]]:
    async with running(settings) as app, api_client(app, key) as http:
        yield http, app


def _attempts(
    row: Row, mark: str, sample: SampleWorkspace, limits: Limits
) -> list[tuple[dict[str, Any], tuple[int, str]]]:
    """Return requests with one mistake each, and their expected status and code; an empty code: any."""
    sound = _sound(row, sample)
    found: list[tuple[dict[str, Any], tuple[int, str]]] = []  # no case for Y, which has its own test
    if mark in {"V", "V*"}:
        found = [(one, (400, "")) for one in _invalid(row, sample)]
    elif mark == "K":
        found = [({**sound, "headers": {"ClientId": text}}, (400, "bad_client_id")) for text in ("", "no spaces")]
    elif mark == "T":
        most = limits.bulk_body_bytes if row.id in {"DS5", "DS11"} else limits.body_bytes
        large = {**sound, "json": None, "content": b" " * (most + 1)}
        other = {**sound, "json": None, "content": b"x", "headers": {"Content-Type": "text/plain"}}
        found = [(large, (413, "too_large")), (other, (415, ""))]
    elif mark == "N":
        name = {"DS": "sink", "BL": "block", "WS": "workspace", "CS": "file", "WH": "webhook"}[row.id[:2]]
        name = name if f"{{{name}}}" in row.path else "workspace"
        absent = _sound(row, dataclasses.replace(sample, **{name: ABSENT}))
        found = [(absent, (403 if name == "file" else 404, "")), *_states(row, sample, {404})]
    elif mark == "I":
        found = [({**sound, "headers": {"If-Match": '"999"'}}, (412, ""))]
    elif mark == "304":
        found = [(sound, (304, ""))]
    elif mark in {"409", "422"}:
        found = _states(row, sample, {int(mark)})
    return found


def _states(row: Row, sample: SampleWorkspace, statuses: set[int]) -> list[tuple[dict[str, Any], tuple[int, str]]]:
    return [
        (
            {
                **_sound(row, sample),
                **{name: _filled(value, sample) for name, value in more.items() if name != "path"},
                **({"url": _filled(more["path"], sample)} if "path" in more else {}),
            },
            (status, code),
        )
        for more, status, code in STATES.get(row.id, ())
        if status in statuses
    ]


def _invalid(row: Row, sample: SampleWorkspace) -> list[dict[str, Any]]:
    sound = _sound(row, sample)
    if row.id == "DS4":
        return [{**sound, "url": sound["url"].rpartition("/")[0] + "/%ff"}]
    if row.id in {"WS3", "WS4"}:
        return [{**sound, "url": "/v1/workspace/no-uuid"}]
    if row.id == "CS1":
        return [{**sound, "params": {}}]
    if row.method == "GET":
        return [{**sound, "params": {"take": text}} for text in ("0", "x", "1001")]
    broken = [{**sound, "json": None, "content": content} for content in (b"{", b'"text"', b'{"a": NaN}')]
    return broken + [attempt for attempt, _ in _states(row, sample, {400})]


def _sound(row: Row, sample: SampleWorkspace, **more: Any) -> dict[str, Any]:
    body = _filled(row.json, sample)
    query = {name: _filled(text, sample) for name, text in row.query.items()}
    return {"url": _path(row, sample), "params": query, "json": body, "headers": {}, **more}


def _path(row: Row, sample: SampleWorkspace) -> str:
    return row.path.format(**dataclasses.asdict(sample))


def _filled(value: Any, sample: SampleWorkspace) -> Any:
    """Return the value with the sample's ids in its placeholders."""
    if value is None:
        return None
    text = json.dumps(value)
    for name, known in dataclasses.asdict(sample).items():
        text = text.replace(f"{{{name}}}", known)
    return json.loads(text)


def _reported(settings: WorkspacedSettings) -> list[str]:
    rows = transact(settings.database, lambda tx: tx.all("SELECT type FROM event ORDER BY number"))
    return [str(row[0]) for row in rows]


async def _converted(http: httpx.AsyncClient, sample: SampleWorkspace) -> None:
    while (await http.get(f"/v1/cloud-storage/{sample.file}")).json()["conversion"]["state"] != "succeeded":
        pass  # it polls the database, so it lets other tasks run


async def _state(http: httpx.AsyncClient, sample: SampleWorkspace) -> list[Any]:
    base = f"/v1/workspace/{sample.workspace}"
    paths = (f"{base}/data-sink", f"{base}/blocks", f"/v1/webhooks/{sample.webhook}", "/v1/workspace", "/v1/webhooks")
    return [(await http.get(path)).json() for path in paths]
