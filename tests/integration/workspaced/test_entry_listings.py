"""Pages of a sink's entries, and their form as CSV (contract DS1, S15, S16)."""

from __future__ import annotations

import csv
import dataclasses
import io
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings

pytestmark = pytest.mark.both_databases

KEYS = ["engine.mass", "Engine.thrust", "a%b", "a_b", "aXb", "tank\\wall", "été"]


@pytest.fixture
async def filled(http: httpx.AsyncClient, sink: str) -> str:
    for key in KEYS:
        response = await http.post(sink, json={"key": key, "dataType": "scalar", "value": f"value of {key}"})
        assert response.status_code == 201, response.text
    return sink


async def listed(http: httpx.AsyncClient, sink: str, **query: Any) -> list[str]:
    response = await http.get(sink, params=query)
    assert response.status_code == 200, response.text
    return [entry["key"] for entry in response.json()["entries"]]


async def test_an_unpaged_list_has_every_entry_and_no_count(http: httpx.AsyncClient, filled: str) -> None:
    response = await http.get(filled)
    assert sorted(entry["key"] for entry in response.json()["entries"]) == sorted(KEYS)
    assert "X-Total-Count" not in response.headers


async def test_a_page_has_the_total_and_the_link_of_the_next_page(http: httpx.AsyncClient, filled: str) -> None:
    # contract S15
    seen: list[str] = []
    target = f"{filled}?take=3&sortedBy=key"
    while target:
        response = await http.get(target)
        assert response.headers["X-Total-Count"] == str(len(KEYS))
        seen += [entry["key"] for entry in response.json()["entries"]]
        target = response.links.get("next", {}).get("url", "")
    assert seen == sorted(KEYS)
    assert await listed(http, filled, sortedBy="key", sortOrder="desc") == sorted(KEYS, reverse=True)


async def test_the_search_is_literal_and_ignores_case(http: httpx.AsyncClient, filled: str) -> None:
    # contract S15
    assert await listed(http, filled, search="ENGINE", sortedBy="key") == ["Engine.thrust", "engine.mass"]
    assert await listed(http, filled, search="%") == ["a%b"]
    assert await listed(http, filled, search="a_b") == ["a_b"]
    assert await listed(http, filled, search="tank\\") == ["tank\\wall"]
    assert await listed(http, filled, search="nothing") == []
    response = await http.get(filled, params={"search": "engine", "take": "1"})
    assert response.headers["X-Total-Count"] == "2"


async def test_the_latest_entry_is_first_on_request(http: httpx.AsyncClient, filled: str) -> None:
    # contract S15
    await http.patch(f"{filled}/aXb", json={"value": "new"})
    assert (await listed(http, filled, sortedBy="updatedAt", sortOrder="DESC", take=1)) == ["aXb"]
    assert (await listed(http, filled, sortedBy="createdAt", take=1)) == [KEYS[0]]
    assert (await listed(http, filled, sortedBy="updatedAt", sortOrder="ASC"))[-1] == "aXb"


@pytest.mark.parametrize(
    "query",
    [
        *({"take": "0"}, {"take": "1001"}, {"skip": "-1"}, {"sortedBy": "version"}, {"format": "xml"}),
        *({"search": "x" * 256}, {"prefix": "x" * 256}, {"valueFrom": "12 kg"}, {"updatedFrom": "today"}),
    ],
)
async def test_an_invalid_query_is_rejected(http: httpx.AsyncClient, filled: str, query: dict[str, str]) -> None:
    assert (await http.get(filled, params=query)).status_code == 400


async def test_an_unchanged_page_is_not_sent_again(http: httpx.AsyncClient, filled: str) -> None:
    first = await http.get(filled, params={"take": "2"})
    again = await http.get(filled, params={"take": "2"}, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_csv_has_every_value_unchanged(http: httpx.AsyncClient, sink: str) -> None:
    # contract S16
    values = {"a": "=1+1", "b": 'say "hi", twice\r\nplease', "c": "", "d": "0.10", "e": "\tkg²", "f,g": "-5"}
    for key, value in values.items():
        await http.post(sink, json={"key": key, "dataType": "scalar", "value": value})
    await http.post(sink, json={"key": "nothing", "dataType": "text"})
    response = await http.get(sink, params={"format": "csv", "sortedBy": "key"})
    assert response.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode(), newline="")))
    assert {row["key"]: row["value"] for row in rows} == {**values, "nothing": ""}
    assert b'"c","",scalar,' in response.content
    assert b'"nothing",,text,' in response.content


async def test_a_long_csv_is_complete(http: httpx.AsyncClient, sink: str) -> None:
    entries = [{"key": f"k{index:04d}", "value": str(index)} for index in range(2_500)]
    assert (await http.post(f"{sink}/mass", json=entries)).status_code == 200
    response = await http.get(sink, params={"format": "csv", "sortedBy": "key"})
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["key"], row["value"]) for row in rows] == [(item["key"], item["value"]) for item in entries]
    assert len(await listed(http, sink, sortedBy="key", skip=400)) == 2_100


@pytest.mark.parametrize("order", [{}, {"sortedBy": "key"}, {"sortOrder": "DESC"}, {"sortedBy": "updatedAt"}])
async def test_paging_by_cursor_misses_and_repeats_no_entry_while_others_are_added_and_removed(
    http: httpx.AsyncClient, sink: str, order: dict[str, str]
) -> None:
    # contract G27
    lasting = [f"k{index:03d}" for index in range(60)]
    passing = [f"k{index:03d}-passing" for index in range(60)]
    entries = [{"key": key, "value": "1"} for key in lasting + passing]
    assert (await http.post(f"{sink}/mass", json=entries)).status_code == 200
    target, seen, turn = f"{sink}?{httpx.QueryParams({'take': '7', **order})}", list[str](), 0
    while target:
        response = await http.get(target)
        assert response.status_code == 200, response.text
        seen += [entry["key"] for entry in response.json()["entries"]]
        for gone in passing[turn * 5 : turn * 5 + 5]:
            await http.delete(f"{sink}/{gone}")
        await http.post(sink, json={"key": f"a-new-{turn:03d}", "dataType": "scalar"})
        turn += 1
        target = response.links.get("next", {}).get("url", "")
    assert sorted(key for key in seen if key in set(lasting)) == lasting
    assert len(seen) == len(set(seen))


async def test_a_cursor_is_valid_for_its_own_order_only(http: httpx.AsyncClient, filled: str) -> None:
    # contract G27
    response = await http.get(filled, params={"take": "2", "sortedBy": "key"})
    cursor = httpx.URL(response.links["next"]["url"]).params["cursor"]
    assert await listed(http, filled, take=2, sortedBy="key", cursor=cursor) == sorted(KEYS)[2:4]
    assert await listed(http, filled, sortedBy="key", cursor=cursor) == sorted(KEYS)[2:]
    for query in (
        {"cursor": cursor},
        {"cursor": cursor, "sortedBy": "key", "sortOrder": "DESC"},
        {"cursor": cursor, "sortedBy": "key", "skip": "1"},
        {"cursor": "x", "sortedBy": "key"},
        {"cursor": "é", "sortedBy": "key"},
        {"cursor": cursor[:-3], "sortedBy": "key"},
        {"cursor": "WyIgQVNDIixbIngiXV0"},
        {"cursor": "WyIgQVNDIixbIlx1MDAwMCJdXQ"},
        {"cursor": "WyJ1cGRhdGVkQXQgQVNDIixbIngiLCJrIl1d", "sortedBy": "updatedAt"},
        {"cursor": "WyIgQVNDIixbXV0"},
    ):
        refused = await http.get(filled, params={"take": "2", **query})
        assert refused.status_code == 400, (query, refused.text)


@pytest.fixture
def few(settings: WorkspacedSettings) -> WorkspacedSettings:
    """A page skips at most four entries."""
    return dataclasses.replace(settings, limits=dataclasses.replace(settings.limits, walked_rows=4))


async def test_a_search_finds_values_literally_in_any_case_and_in_each_order(
    http: httpx.AsyncClient, sink: str
) -> None:
    # contract S15
    values = {"a": "Steel 100%", "steel.b": "x", "c": "aluminium", "d": None, "e": "STEEL\\"}
    for key, value in values.items():
        await http.post(sink, json={"key": key, "dataType": "text", "value": value})
    for order in ({}, {"sortedBy": "key"}, {"sortOrder": "DESC"}, {"sortedBy": "key", "sortOrder": "DESC"}):
        found = {
            where: sorted(await listed(http, sink, search="steel", searchIn=where, take="10", **order))
            for where in ("key", "value", "all")
        }
        assert found == {"key": ["steel.b"], "value": ["a", "e"], "all": ["a", "e", "steel.b"]}
        assert await listed(http, sink, search="0%", searchIn="value", **order) == ["a"]
        assert await listed(http, sink, search="\\", searchIn="all", **order) == ["e"]
    assert (await http.get(sink, params={"search": "x", "searchIn": "values"})).status_code == 400
    sorted_by_time = await http.get(sink, params={"search": "x", "searchIn": "all", "sortedBy": "updatedAt"})
    assert sorted_by_time.json()["code"] == "bad_sorted_by"


async def test_a_search_finds_keys_in_nfc_and_values_as_they_are(http: httpx.AsyncClient, sink: str) -> None:
    # contract G7: a value is kept as it was sent, so its text in the same form finds it
    composed, decomposed = "na\u00efve", "nai\u0308ve"
    for key, value in (("a", composed), ("b", decomposed), (decomposed, "c")):
        await http.post(sink, json={"key": key, "dataType": "text", "value": value})
    for order in ({}, {"sortedBy": "key"}, {"sortOrder": "DESC"}, {"sortedBy": "key", "sortOrder": "DESC"}):
        for given, found in ((composed, ["a", composed]), (decomposed, ["a", "b", composed])):
            assert sorted(await listed(http, sink, search=given, searchIn="all", **order)) == found
            assert await listed(http, sink, search=given, **order) == [composed]


async def test_a_page_of_a_search_of_values_examines_a_bounded_number_of_characters(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract G28, S15
    limits = dataclasses.replace(settings.limits, searched_characters=2_500)
    async with (
        running(dataclasses.replace(settings, limits=limits)) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service") as http,
    ):
        http.headers.update({"x-api-key": make_key(), "ClientId": "tests"})
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        entries = [{"key": f"k{n:02d}", "dataType": "text", "value": "v" * 1_000 + str(n)} for n in range(30)]
        body = {"label": "s", "entries": entries}
        sink = (await http.post(f"/v1/workspace/{workspace}/data-sink", json=body)).headers["Location"]
        for order in ({}, {"sortedBy": "key"}, {"sortOrder": "DESC"}, {"sortedBy": "key", "sortOrder": "DESC"}):
            query = {"take": "1", "search": "v29", "searchIn": "value", **order}
            target, found, pages = f"{sink}?{httpx.QueryParams(query)}", list[str](), 0
            while target:
                response = await http.get(target)
                assert "X-Total-Count" not in response.headers
                found += [entry["key"] for entry in response.json()["entries"]]
                target, pages = response.links.get("next", {}).get("url", ""), pages + 1
            assert found == ["k29"]
            assert pages > 3


async def test_the_number_of_skipped_rows_of_a_page_is_bounded(few: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract G28, S15
    async with (
        running(few) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service") as http,
    ):
        http.headers.update({"x-api-key": make_key(), "ClientId": "tests"})
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        sink = (await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})).headers["Location"]
        for key in KEYS:
            await http.post(sink, json={"key": key, "dataType": "scalar"})
        for order in ({}, {"sortedBy": "key"}, {"sortOrder": "DESC"}, {"sortedBy": "key", "sortOrder": "DESC"}):
            target, found, pages = f"{sink}?{httpx.QueryParams({'take': '2', 'search': 'A', **order})}", set[str](), 0
            while target:
                response = await http.get(target)
                assert "X-Total-Count" not in response.headers
                found |= {entry["key"] for entry in response.json()["entries"]}
                target, pages = response.links.get("next", {}).get("url", ""), pages + 1
            assert found == {key for key in KEYS if "a" in key.lower()}
            assert pages >= 3
        for query in ({"skip": "5"}, {"search": "wall", "skip": "1"}, {"sortedBy": "updatedAt"}):
            refused = await http.get(sink, params={"take": "1", **query})
            assert refused.status_code == 400, query
            assert "4" in refused.json()["detail"]
        assert len(await listed(http, sink, search="a")) == 5


MASSES = {"part-10.mass": "9", "part-2.mass": "12.5", "part-2.note": "9 kg", "part-2.none": None, "tank.mass": "-1e1"}


@pytest.fixture
async def masses(http: httpx.AsyncClient, sink: str) -> str:
    for key, value in MASSES.items():
        entry = {"key": key, "dataType": "text" if "n" in key[6:] else "scalar"} | (
            {} if value is None else {"value": value}
        )
        assert (await http.post(sink, json=entry)).status_code == 201
    return sink


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({"prefix": "part-2.", "sortedBy": "key"}, ["part-2.mass", "part-2.none", "part-2.note"]),
        ({"prefix": "part-2.", "sortedBy": "key", "sortOrder": "DESC"}, ["part-2.note", "part-2.none", "part-2.mass"]),
        ({"prefix": "tank.mass"}, ["tank.mass"]),
        ({"prefix": "tank.masses"}, []),
        ({"dataType": "text", "sortedBy": "key"}, ["part-2.none", "part-2.note"]),
        ({"dataType": "text", "search": "9", "searchIn": "value"}, ["part-2.note"]),
        ({"updatedBy": "mallory"}, []),
        ({"updatedUntil": "2020-01-01T00:00:00Z"}, []),
        ({"updatedFrom": "2020-01-01T00:00:00Z", "prefix": "tank"}, ["tank.mass"]),
        ({"valueFrom": "-10", "valueUntil": "9", "sortedBy": "key"}, ["part-10.mass", "tank.mass"]),
        ({"valueFrom": "9.5", "search": "MASS"}, ["part-2.mass"]),
        ({"sortedBy": "naturalKey", "search": "mass"}, ["part-2.mass", "part-10.mass", "tank.mass"]),
        (
            {"sortedBy": "naturalKey", "sortOrder": "DESC", "prefix": "p", "dataType": "scalar"},
            ["part-10.mass", "part-2.mass"],
        ),
        ({"sortedBy": "value"}, ["tank.mass", "part-10.mass", "part-2.mass", "part-2.note", "part-2.none"]),
        (
            {"sortedBy": "value", "sortOrder": "DESC"},
            ["part-2.mass", "part-10.mass", "tank.mass", "part-2.note", "part-2.none"],
        ),
        (
            {"sortedBy": "dataType", "sortOrder": "DESC", "prefix": "part-2"},
            ["part-2.none", "part-2.note", "part-2.mass"],
        ),
        ({"sortedBy": "updatedBy", "prefix": "part-2"}, ["part-2.mass", "part-2.none", "part-2.note"]),
        ({"sortedBy": "updatedAt", "valueFrom": "9", "dataType": "scalar"}, ["part-10.mass", "part-2.mass"]),
    ],
)
async def test_entries_are_filtered_and_sorted(
    http: httpx.AsyncClient, masses: str, query: dict[str, str], keys: list[str]
) -> None:
    # contract S15
    assert await listed(http, masses, **query) == keys
    seen, target = list[str](), f"{masses}?{httpx.QueryParams({**query, 'take': '1'})}"
    while target:
        response = await http.get(target)
        assert response.status_code == 200, response.text
        seen += [entry["key"] for entry in response.json()["entries"]]
        if query.get("searchIn") != "value":
            assert response.headers["X-Total-Count"] == str(len(keys))
        target = response.links.get("next", {}).get("url", "")
    assert seen == keys


async def test_a_large_sink_is_sorted_by_an_index_or_in_a_small_range_of_keys(
    few: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract S15
    async with (
        running(few) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service") as http,
    ):
        http.headers.update({"x-api-key": make_key(), "ClientId": "tests"})
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        sink = (await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})).headers["Location"]
        entries = [{"key": f"{part}.{number}", "value": str(-number)} for part in "ab" for number in (1, 2, 10)]
        assert (await http.post(f"{sink}/mass", json=entries)).status_code == 200
        refused = await http.get(sink, params={"sortedBy": "naturalKey"})
        assert (refused.status_code, refused.json()["code"]) == (400, "too_many_to_sort")
        assert await listed(http, sink, sortedBy="naturalKey", prefix="b.") == ["b.1", "b.2", "b.10"]
        assert await listed(http, sink, sortedBy="value", prefix="b.") == ["b.10", "b.2", "b.1"]
        page = await http.get(sink, params={"valueUntil": "-9", "sortedBy": "key", "take": "1", "prefix": "b"})
        assert [entry["key"] for entry in page.json()["entries"]] == ["b.10"]
        page = await http.get(sink, params={"updatedBy": "mallory", "sortedBy": "key", "take": "1"})
        assert page.json()["entries"] == []
        assert "next" in page.links, "four of six entries were examined"


@pytest.mark.parametrize("take", ["1", "2", "100"])
async def test_keys_are_folded_into_groups(http: httpx.AsyncClient, sink: str, take: str) -> None:
    # contract DS17, S17
    keys = ["a", "a.b.c", "a.b.d/e", "a.b.d/f", "a.c", "alone.x", "b/", "b/c", "é.1", "é.2"]
    assert (await http.post(f"{sink}/mass", json=[{"key": key, "value": "1"} for key in keys])).status_code == 200

    async def groups(prefix: str) -> list[tuple[str, int]]:
        found = list[tuple[str, int]]()
        query = httpx.QueryParams({"take": take, "prefix": prefix})
        target = f"{sink.replace('/data-sink/', '/data-sink-groups/')}?{query}"
        while target:
            response = await http.get(target)
            assert response.status_code == 200, response.text
            assert len(response.json()) <= int(take)
            found += [(one["prefix"] or one["entry"]["key"], one["count"]) for one in response.json()]
            target = response.links.get("next", {}).get("url", "")
        return found

    assert await groups("") == [("a", 1), ("a.", 4), ("alone.x", 1), ("b/", 2), ("é.", 2)]
    assert await groups("a.") == [("a.b.", 3), ("a.c", 1)]
    assert await groups("a.b.d/") == [("a.b.d/e", 1), ("a.b.d/f", 1)]
    assert await groups("b/") == [("b/", 1), ("b/c", 1)]
    assert await groups("nothing") == []


async def test_both_databases_read_the_same_numbers_and_natural_order(http: httpx.AsyncClient, sink: str) -> None:
    # contract S15
    numbers = ["-1e3", "-.5", "007", "+8", "9.", "1e2"]
    texts = ["", " 5", "1,5", "1e100", "5 kg", "\u0665"]
    entries = [{"key": f"k{index:02d}", "value": value} for index, value in enumerate([*texts, *reversed(numbers)])]
    assert (await http.post(f"{sink}/mass", json=entries)).status_code == 200
    found = await http.get(sink, params={"sortedBy": "value"})
    assert [entry["value"] for entry in found.json()["entries"]] == [*numbers, *texts]
    found = await http.get(sink, params={"valueFrom": "-0.5", "valueUntil": "9", "sortedBy": "value"})
    assert [entry["value"] for entry in found.json()["entries"]] == ["-.5", "007", "+8", "9."]
    keys = ["n", "n.02", "n.2", "n.10", "n.10.9", "n.10.10", "n.123456789012345678901", "n.x"]
    assert (await http.post(f"{sink}/mass", json=[{"key": key, "value": "1"} for key in keys[::-1]])).status_code == 200
    assert await listed(http, sink, sortedBy="naturalKey", prefix="n") == keys
    assert await listed(http, sink, sortedBy="naturalKey", prefix="n", sortOrder="DESC") == keys[::-1]
