"""Defects of simple implementations, with one test for each (contract G6, G7, G9, G10, G12, G16, G24)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.sqlite


async def test_a_slash_in_a_key_is_addressed_with_percent_2f(http: httpx.AsyncClient, sink: str) -> None:
    # contract G16
    await http.post(sink, json={"key": "a/b", "value": "1", "dataType": "scalar"})
    response = await http.get(f"{sink}/a%2Fb")
    assert (response.status_code, response.json()["key"]) == (200, "a/b")


async def test_malformed_json_without_a_key_is_401_because_authentication_is_before_parsing(
    http: httpx.AsyncClient, sinks: str
) -> None:
    # contract G12
    response = await http.post(sinks, content=b"{", headers={"x-api-key": "wrong", "Content-Type": "application/json"})
    assert response.status_code == 401
    del http.headers["x-api-key"]
    assert (await http.post(sinks, content=b"{")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        b'{"label":"\\ud800"}',
        b'{"label":NaN}',
        b'{"label":"x","icon":{"metadata":{"n":1e999}}}',
        b'{"label":"x","icon":{"metadata":{"n":-1e999}}}',
        b'{"label":"x","ignored":"\\udc00"}',
        b'{"label":"\xed\xa0\x80"}',
        b"[" * 100_000,
        b"",
        b"[]",
    ],
    ids=["surrogate", "nan", "infinite", "minus infinite", "nested surrogate", "not utf-8", "deep", "empty", "a list"],
)
async def test_json_values_that_cannot_be_stored_are_400_and_not_500(
    http: httpx.AsyncClient, sinks: str, body: bytes
) -> None:
    # contract G6, G7
    response = await http.post(sinks, content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]) == (400, "Invalid request")


@pytest.mark.parametrize(
    "body", [{"label": 3}, {"label": "x", "publicCanReadEnabled": "true"}, {"label": "x", "publicCanReadEnabled": 1}]
)
async def test_types_are_strict(http: httpx.AsyncClient, body: dict[str, Any]) -> None:
    # contract G6
    response = await http.post("/v1/workspace", json=body)
    assert (response.status_code, response.json()["code"]) == (400, "wrong_type")


@pytest.mark.parametrize(
    "body", [b'{"label":"a\\u0000b"}', b'{"label":"x","ignored":{"deep":["\\u0000"]}}', b'{"label":"x","\\u0000":1}']
)
async def test_the_character_nul_is_rejected_everywhere(http: httpx.AsyncClient, sinks: str, body: bytes) -> None:
    # contract G7
    response = await http.post(sinks, content=body)
    assert (response.status_code, response.json()["code"]) == (400, "nul_character")


async def test_an_escaped_backslash_before_u0000_is_no_nul(http: httpx.AsyncClient, sink: str) -> None:
    response = await http.post(f"{sink}/mass", content=rb'[{"key":"k","value":"\\u0000"}]')
    assert response.json()[0]["value"] == r"\u0000"


@pytest.mark.parametrize("length_is_declared", [True, False], ids=["declared", "chunked"])
async def test_a_body_of_50_mb_is_rejected_before_most_of_it_has_arrived(
    http: httpx.AsyncClient, sink: str, length_is_declared: bool
) -> None:
    # contract G9
    piece, pieces, taken = b" " * 65_536, 800, 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(pieces):
            taken += 1
            yield piece

    headers = {"Content-Length": str(len(piece) * pieces)} if length_is_declared else {}
    response = await http.post(sink, content=body(), headers=headers)
    assert (response.status_code, response.json()["code"]) == (413, "too_large")
    assert taken <= 1_048_576 // len(piece) + 2


async def test_a_trailing_slash_is_another_path_and_no_redirect(http: httpx.AsyncClient, sink: str) -> None:
    # contract G16
    assert (await http.get(f"{sink}/")).status_code == 404
    assert (await http.get("/v1/workspace/")).status_code == 404
    assert (await http.get("/v1//workspace")).status_code == 404


async def test_head_returns_the_headers_of_get_without_a_body(http: httpx.AsyncClient, sink: str, sinks: str) -> None:
    # contract G24
    for path in (sink, sinks, f"{sinks}/list", "/healthz", "/readyz", "/v1/workspace"):
        got, head = await http.get(path), await http.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers.get("ETag") == got.headers.get("ETag")


async def test_405_has_the_union_of_all_methods_of_the_path(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    # contract G24
    response = await http.put(f"{sinks}/list")
    assert (response.status_code, response.headers["Allow"]) == (405, "DELETE, GET, HEAD, OPTIONS, PATCH, POST")
    assert (await http.delete(sinks)).headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    asked = await http.options(f"{sink}/mass")
    assert (asked.status_code, asked.headers["Allow"], asked.content) == (
        204,
        "DELETE, GET, HEAD, OPTIONS, PATCH, POST",
        b"",
    )


async def test_a_body_without_a_content_type_is_parsed_as_json(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G10
    assert (await http.post(sinks, content=b'{"label":"plain"}')).status_code == 201


async def test_a_body_of_another_declared_type_is_415(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G10
    for kind in ("text/plain", "application/json; charset=latin-1", "application/x-www-form-urlencoded"):
        response = await http.post(sinks, content=b'{"label":"x"}', headers={"Content-Type": kind})
        assert response.status_code == 415
    for kind in ("application/json; charset=UTF-8", "application/merge-patch+json"):
        response = await http.post(sinks, content=b'\xef\xbb\xbf{"label":"x"}', headers={"Content-Type": kind})
        assert response.status_code == 201
