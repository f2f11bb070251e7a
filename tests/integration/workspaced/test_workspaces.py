from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient

_ID = "123e4567-e89b-12d3-a456-426614174000"


async def test_a_workspace_is_created_with_its_root_block_and_read_back(http: httpx.AsyncClient) -> None:
    # contract G1, W3, W4
    body = {
        "id": _ID.upper(),
        "label": "  Rocket ",
        "publicCanReadEnabled": True,
        "exportsEnabled": False,
        "statuses": "draft",
        "currentWorkspaceVersion": _ID,
    }
    created = await http.post("/v1/workspace", json=body)
    assert (created.status_code, created.headers["Location"]) == (201, f"/v1/workspace/{_ID}")
    record = created.json()
    assert record["id"] == _ID
    assert record["label"] == "Rocket"
    assert record["blocks"] == [record["rootBlock"]]
    assert record["statuses"] == ["draft"]
    assert record["createdBy"] == "svc:test"
    assert (record["publicCanReadEnabled"], record["exportsEnabled"], record["guestsEnabled"]) == (True, False, False)
    empty = [name for name, value in record.items() if value == []]
    assert len(empty) == 17
    assert (await http.get(f"/v1/workspace/{_ID}")).json() == record


async def test_an_invalid_body_is_400_with_a_pointer_to_the_mistake(http: httpx.AsyncClient) -> None:
    for body, pointer in (
        ({}, "/label"),
        ({"label": " "}, "/label"),
        ({"label": "x" * 256}, "/label"),
        ({"label": "a\nb"}, "/label"),
        ({"label": "x", "id": "17"}, "/id"),
        ({"label": "x", "statuses": [1]}, "/statuses"),
    ):
        response = await http.post("/v1/workspace", json=body)
        assert (response.status_code, [error["pointer"] for error in response.json()["errors"]]) == (400, [pointer])


async def test_unknown_fields_are_ignored_and_named(http: httpx.AsyncClient) -> None:
    # contract G5
    response = await http.post("/v1/workspace", json={"label": "x", "colour": 1, "ümlaut\r\nX: y": 2})
    assert response.status_code == 201
    assert response.headers["X-Ignored-Fields"] == "colour,%C3%BCmlaut%0D%0AX%3A%20y"
    long = await http.post("/v1/workspace", json={"label": "x", "y" * 100_000: 1})  # a proxy refuses long headers
    assert long.headers["X-Ignored-Fields"] == "y" * 64


@pytest.mark.both_databases
async def test_the_list_has_the_workspaces_that_the_key_may_read(
    client: AsyncClient, transport: httpx.ASGITransport, make_key: Callable[..., str]
) -> None:
    # contract W1
    made = [await client.create_workspace(label) for label in ("Rocket", "Other")]
    assert list(await client.list_workspaces()) == made
    key = make_key(name="limited", role="reader", workspace_id=made[1].id)
    async with AsyncClient("http://service", api_key=key, transport=transport) as limited:
        assert list(await limited.list_workspaces()) == made[1:]


async def test_filters_limit_the_list(client: AsyncClient) -> None:
    # contract W2
    for label in ("Rocket", "rocket stage", "Probe", "Straße"):
        await client.create_workspace(label)

    async def labels(filters: str | dict[str, Any]) -> list[str]:
        return [one.label for one in await client.list_workspaces(filters=filters)]

    assert await labels("ROCKET") == ["Rocket", "rocket stage"]
    assert await labels("STRASSE") == ["Straße"]
    assert await labels("") == ["Rocket", "rocket stage", "Probe", "Straße"]
    assert await labels({"label": "Probe"}) == ["Probe"]
    assert await labels({"label": {"startsWith": "rocket", "ne": "x"}}) == ["rocket stage"]
    assert await labels({"label": {"in": ["Probe", "Rocket"]}, "createdBy": "svc:test"}) == ["Rocket", "Probe"]
    assert await labels({"createdAt": {"gte": "2000-01-01T00:00:00.000Z", "lt": "2001-01-01T00:00:00.000Z"}}) == []


async def test_filters_compare_instants_whatever_their_form(http: httpx.AsyncClient) -> None:
    # contract G3, W2
    record = (await http.post("/v1/workspace", json={"label": "w"})).json()
    created = datetime.fromisoformat(record["createdAt"])
    zone = timezone(timedelta(hours=10))
    same, earlier = created.astimezone(zone).isoformat(), (created - timedelta(hours=1)).astimezone(zone).isoformat()
    for condition, found in (
        ({"eq": same}, 1),
        ({"in": [earlier, same]}, 1),
        ({"lte": earlier}, 0),
        ({"gt": earlier}, 1),
        ({"ne": same}, 0),
        ({"startsWith": record["createdAt"][:10]}, 1),
        ({"gte": record["createdAt"][:10]}, 1),
    ):
        response = await http.get("/v1/workspace", params={"filters": json.dumps({"createdAt": condition})})
        assert (condition, len(response.json())) == (condition, found)


async def test_filters_are_compared_in_the_unicode_form_of_labels(http: httpx.AsyncClient) -> None:
    # contract G7
    await http.post("/v1/workspace", json={"label": "Dépôt"})
    for filters in ("de\u0301p", '{"label": "De\u0301po\u0302t"}'):
        assert len((await http.get("/v1/workspace", params={"filters": filters})).json()) == 1


async def test_invalid_filters_are_400(http: httpx.AsyncClient) -> None:
    # contract W2
    for filters in ("{", '{"no":1}', '{"label":{"like":"x"}}', '{"label":{"in":"x"}}', '{"label":1}'):
        assert (await http.get("/v1/workspace", params={"filters": filters})).status_code == 400, filters


async def test_lists_are_paged(http: httpx.AsyncClient) -> None:
    # contract G19
    for number in range(5):
        await http.post("/v1/workspace", json={"label": f"W{number}"})
    page = await http.get("/v1/workspace?take=2&skip=2&sortedBy=label&sortOrder=desc")
    assert [one["label"] for one in page.json()] == ["W2", "W1"]
    assert page.headers["X-Total-Count"] == "5"
    assert 'skip=4&sortedBy=label&sortOrder=desc>; rel="next"' in page.headers["Link"]
    assert 'skip=0&sortedBy=label&sortOrder=desc>; rel="prev"' in page.headers["Link"]
    for wrong in ("take=0", "take=1001", "take=x", "skip=-1", "sortOrder=up", "sortedBy=colour"):
        assert (await http.get(f"/v1/workspace?{wrong}")).status_code == 400
