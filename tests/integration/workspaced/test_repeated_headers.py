"""Several lines of one header: joined in order, or refused before anything is done."""

from __future__ import annotations

import httpx
import pytest

from ingestd.process.request_headers import SINGLE

pytestmark = pytest.mark.sqlite


async def test_a_header_with_one_value_that_occurs_twice_is_refused(http: httpx.AsyncClient, sink: str) -> None:
    # contract G29
    entry = {"key": "k", "value": "v"}
    accept = ("Accept", "application/problem+json")
    for name in sorted(SINGLE):
        twice = [(name.decode(), http.headers.get(name.decode(), "1"))] * 2
        for path in (f"{sink}/mass", "/ui/sign-in"):
            response = await http.post(path, json=entry, headers=[accept, *twice])
            assert response.status_code == 400, (name, path, response.text)
            assert name.decode() in response.text
    assert (await http.get(sink)).json()["entries"] == []


async def test_lines_of_a_list_are_read_in_their_order(http: httpx.AsyncClient, sink: str) -> None:
    # contract G29, G17, M8
    tag = (await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})).headers["ETag"]
    match = [("If-None-Match", '"0"'), ("If-None-Match", tag)]
    assert (await http.get(f"{sink}/k", headers=match)).status_code == 304
    prefer = [("Prefer", "respond-async"), ("Prefer", "return=minimal")]
    bulk = await http.post(f"{sink}/mass", json=[{"key": "k", "value": "w"}], headers=prefer)
    assert bulk.json()["accepted"] == 1
    coded = [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")]
    assert (await http.post(f"{sink}/mass", content=b"x", headers=coded)).status_code == 415
