"""Operations (contract DS4, DS8, DS9, DS10)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ingestd.client import AsyncClient
from ingestd.client.errors import Conflict, NotFound
from ingestd.client.records import EntryChange, Sink

_ID = "123e4567-e89b-12d3-a456-426614174000"
KEYS = ["a/b", "a%2Fb", "kg²", "mass", "list", "+", "100%", "Stufe 1?", "#1", "🚀", "a\\b", "k" * 255, "../x"]


async def test_a_key_of_any_characters_is_created_read_changed_and_deleted(http: httpx.AsyncClient, sink: str) -> None:
    # contract S7
    for key in KEYS:
        created = await http.post(sink, json={"key": key, "value": "1", "dataType": "scalar"})
        path = f"{sink}/{quote(key, safe='')}"
        assert (created.status_code, created.headers["Location"]) == (201, path), key
        assert (await http.get(path)).json() == created.json(), key
        changed = await http.patch(path, json={"value": "2"})
        assert (changed.status_code, changed.json()["key"], changed.json()["value"]) == (200, key, "2"), key
        gone = await http.delete(path)
        assert (gone.status_code, gone.content, gone.headers["Content-Length"]) == (200, b"", "0"), key
        assert (await http.delete(path)).status_code == 404, key


async def test_different_compositions_of_equal_letters_are_one_key(client: AsyncClient, mass_budget: Sink) -> None:
    # contract G7
    where = mass_budget.workspace_id, mass_budget.id
    composed, decomposed = "Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"
    value = "o\u0308"
    await client.create_entry(*where, key=decomposed, value=value, data_type="text")
    for form in (composed, decomposed):
        found = await client.get_entry(*where, form)
        assert (found.key, found.value) == (composed, value)
    with pytest.raises(Conflict):
        await client.create_entry(*where, key=composed, data_type="text")
    with pytest.raises(NotFound):
        await client.get_entry(*where, composed.lower())


async def test_an_invalid_key_is_400(http: httpx.AsyncClient, sink: str) -> None:
    # contract S7
    for key in ("", " a", "a ", ".", "..", "a\tb", "a\x7f", "k" * 256, "🚀" * 255 + "x", None, 3):
        response = await http.post(sink, json={"key": key, "dataType": "scalar"})
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (400, "/key"), key


@pytest.mark.parametrize("value", ["", " 0.10 ", "1e-7", "1" * 40, "00417", "15 kg", "ö" * 32_768, "line\nbreak", None])
async def test_a_value_is_stored_byte_for_byte(client: AsyncClient, mass_budget: Sink, value: str | None) -> None:
    # contract G7, S10
    where = mass_budget.workspace_id, mass_budget.id
    await client.create_entry(*where, key="k", value=value, data_type="scalar")
    assert (await client.get_entry(*where, "k")).value == value


async def test_an_invalid_entry_is_400_with_a_pointer_to_the_mistake(http: httpx.AsyncClient, sink: str) -> None:
    # contract S9, S10
    for body, pointer in (
        ({"dataType": "t"}, "/key"),
        ({"key": "k"}, "/dataType"),
        ({"key": "k", "dataType": None}, "/dataType"),
        ({"key": "k", "dataType": "1x"}, "/dataType"),
        ({"key": "k", "dataType": "t" * 65}, "/dataType"),
        ({"key": "k", "dataType": "t", "value": 1.10}, "/value"),
        ({"key": "k", "dataType": "t", "value": "ö" * 32_769}, "/value"),
        ({"key": "k", "dataType": "t", "id": "x"}, "/id"),
    ):
        response = await http.post(sink, json=body)
        assert (response.status_code, [error["pointer"] for error in response.json()["errors"]]) == (400, [pointer])


async def test_a_second_entry_with_the_key_or_the_id_is_409(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    # contract S8
    body = {"key": "k", "dataType": "scalar", "id": _ID}
    assert (await http.post(sink, json=body)).status_code == 201
    double = await http.post(sink, json={"key": "k", "dataType": "scalar"})
    assert (double.status_code, double.json()["code"], double.json()["existingId"]) == (409, "duplicate_key", _ID)
    other = (await http.post(sinks, json={"label": "other"})).json()["id"]
    taken = await http.post(f"{sinks}/{other}", json={**body, "key": "n"})
    assert (taken.status_code, taken.json()["code"]) == (409, "id_in_use")


@pytest.mark.both_databases
async def test_an_id_created_by_the_service_is_in_use_everywhere_until_its_entry_is_deleted(
    client: AsyncClient, mass_budget: Sink
) -> None:
    # contract G2
    where = mass_budget.workspace_id, mass_budget.id
    made = (await client.create_entry(*where, key="k", data_type="scalar")).id
    other = (await client.create_sink(mass_budget.workspace_id, label="other")).id
    there = mass_budget.workspace_id, other
    with pytest.raises(Conflict) as single:
        await client.create_entry(*there, key="copy", data_type="scalar", id=made)
    with pytest.raises(Conflict) as bulk:
        await client.mass_update(*there, [EntryChange(key="copy", value="v", id=made)])
    await client.delete_entry(*where, "k")
    assert (await client.create_entry(*there, key="copy", data_type="scalar", id=made)).id == made
    with pytest.raises(Conflict) as back:
        await client.create_entry(*where, key="k", data_type="scalar", id=made)
    assert {caught.value.code for caught in (single, bulk, back)} == {"id_in_use"}


async def test_an_entry_is_found_by_its_id_unless_it_is_the_key_of_another(
    client: AsyncClient, mass_budget: Sink
) -> None:
    # contract S7
    where = mass_budget.workspace_id, mass_budget.id
    made = await client.create_entry(*where, key="a/b", value="1", data_type="scalar")
    given = await client.create_entry(*where, key="c", value="2", data_type="scalar", id=_ID)
    assert await client.get_entry(*where, made.id) == made
    assert await client.get_entry(*where, _ID.upper()) == given
    assert (await client.update_entry(*where, made.id, value="3")).key == "a/b"
    other = await client.create_sink(mass_budget.workspace_id, label="other")
    with pytest.raises(NotFound):
        await client.get_entry(mass_budget.workspace_id, other.id, made.id)
    shadow = await client.create_entry(*where, key=_ID, value="key", data_type="scalar")
    assert await client.get_entry(*where, _ID) == shadow
    await client.delete_entry(*where, made.id)
    with pytest.raises(NotFound):
        await client.get_entry(*where, made.id)


async def test_ids_have_the_form_of_version_4(client: AsyncClient, mass_budget: Sink) -> None:
    # contract G1
    where = mass_budget.workspace_id, mass_budget.id
    items = [EntryChange(key=f"k{number}", value="v") for number in range(50)]
    single = [(await client.create_entry(*where, key=f"s{number}", data_type="t")).id for number in range(5)]
    bulk = [entry.id for entry in await client.mass_update(*where, items) if entry]
    assert len(set(single + bulk)) == 55
    for made in single + bulk:
        assert (made[14], made[19] in "89ab", made, len(made)) == ("4", True, made.lower(), 36)


async def test_an_update_merges_and_null_clears_the_value(http: httpx.AsyncClient, sink: str) -> None:
    # contract S10, S11
    created = (await http.post(sink, json={"key": "k", "value": "1", "dataType": "scalar"})).json()
    first = await http.patch(f"{sink}/k", json={"dataType": "text", "key": "other", "id": _ID})
    assert (first.json()["value"], first.json()["dataType"], first.json()["id"]) == ("1", "text", created["id"])
    assert first.headers["X-Ignored-Fields"] == "id,key"
    cleared = await http.patch(f"{sink}/k", json={"value": None})
    assert (cleared.json()["value"], cleared.json()["dataType"]) == (None, "text")
    unchanged = await http.patch(f"{sink}/k", json={})
    assert (unchanged.json(), unchanged.headers["ETag"]) == (cleared.json(), cleared.headers["ETag"])
    wrong: Any
    for wrong in ({"dataType": None}, {"dataType": ""}, {"value": 1}, [], "x"):
        assert (await http.patch(f"{sink}/k", json=wrong)).status_code == 400
    assert (await http.patch(f"{sink}/absent", json={"value": "x"})).status_code == 404
    assert (await http.patch(f"{sink}/k", content=b"x", headers={"Content-Type": "text/csv"})).status_code == 415


async def test_conditional_requests_apply_to_entries(http: httpx.AsyncClient, sink: str) -> None:
    # contract G17
    seen = (await http.post(sink, json={"key": "k", "value": "1", "dataType": "scalar"})).headers["ETag"]
    assert (await http.get(f"{sink}/k", headers={"If-None-Match": seen})).status_code == 304
    assert (await http.patch(f"{sink}/k", json={"value": "2"}, headers={"If-Match": seen})).status_code == 200
    assert (await http.patch(f"{sink}/k", json={"value": "3"}, headers={"If-Match": seen})).status_code == 412
    assert (await http.delete(f"{sink}/k", headers={"If-Match": seen})).status_code == 412
    assert (await http.get(f"{sink}/k")).json()["value"] == "2"


@pytest.mark.both_databases
async def test_writing_an_entry_changes_its_sink(client: AsyncClient, mass_budget: Sink) -> None:
    # contract S12
    where = mass_budget.workspace_id, mass_budget.id
    tags = [mass_budget.etag]
    for write in (
        client.create_entry(*where, key="k", data_type="t"),
        client.update_entry(*where, "k", value="1"),
        client.mass_update_entry(*where, key="k", value="2"),
        client.delete_entry(*where, "k"),
    ):
        await write
        tags.append((await client.get_sink(*where)).etag)
    assert len(set(tags)) == 5


async def test_an_undecodable_path_is_400(http: httpx.AsyncClient, sink: str) -> None:
    # contract G16
    for path in ("%ff", "a%00b", "%ed%a0%80"):
        for method in ("GET", "PATCH", "DELETE"):
            response = await http.request(method, f"{sink}/{path}", json={"value": "x"})
            assert (response.status_code, response.json()["code"]) == (400, "bad_path"), path
