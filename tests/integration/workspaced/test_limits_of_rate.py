"""Rate limits of callers (contract G20), and the setting that is fixed at the first start (contract S4)."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

import httpx
import pytest

from workspaced.app import running
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.port import StorageUnusable


@asynccontextmanager
async def _client(settings: WorkspacedSettings, key: str | None, **more: object) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"ClientId": "tests", **({"x-api-key": key} if key else {})}
    wanted = dataclasses.replace(settings, **more)  # type: ignore[arg-type]
    async with (
        running(wanted) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s", headers=headers) as http,
    ):
        yield http


async def test_too_many_requests_get_429_with_retry_after(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    limits = Limits(requests_per_minute=1, request_burst=3)
    async with _client(settings, make_key(), limits=limits) as http:
        responses = [await http.post("/v1/workspace", content=b"{") for _ in range(4)]
        assert [response.status_code for response in responses] == [400, 400, 400, 429]
        assert [response.headers["RateLimit"].split(";")[1] for response in responses] == ["r=2", "r=1", "r=0", "r=0"]
        assert {response.headers["RateLimit-Policy"] for response in responses} == {'"default";q=1;w=60'}
        refused = responses[-1]
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert (refused.json()["code"], refused.json()["error"]) == ("rate_limited", "Too many requests")
        other = {"x-api-key": make_key(name="other")}
        assert (await http.get("/v1/workspace", headers=other)).status_code == 200
        assert (await http.get("/v1/workspace/nonsense")).status_code == 429
        assert (await http.get("/v1/nowhere")).status_code == 404
        for _ in range(5):
            assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/v1/workspace", headers={"x-api-key": "wrong"})).status_code == 401


async def test_the_defaults_are_those_of_the_contract(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    async with _client(settings, make_key(), limits=Limits()) as http:
        response = await http.get("/v1/workspace")
        assert response.headers["RateLimit-Policy"] == '"default";q=1200;w=60'
        assert response.headers["RateLimit"].startswith('"default";r=199;')
        wrong = await http.get("/v1/workspace", headers={"x-api-key": "wrong"})
        assert wrong.headers["RateLimit-Policy"] == '"failed-authentications";q=20;w=60'


async def test_zero_is_no_limit_without_headers(http: httpx.AsyncClient) -> None:
    # contract G20
    responses = [await http.get("/v1/workspace") for _ in range(250)]
    assert {response.status_code for response in responses} == {200}
    assert not any(name.lower().startswith("ratelimit") for response in responses for name in response.headers)


async def test_callers_without_a_key_share_the_bucket_of_their_address(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    limits = Limits(requests_per_minute=1, request_burst=2)
    proxies = Proxies(networks=(ip_network("127.0.0.0/8"),))
    async with _client(settings, None, limits=limits, proxies=proxies) as http:
        path = "/v1/workspace/00000000-0000-4000-8000-000000000000"
        assert [(await http.get(path)).status_code for _ in range(3)] == [401, 401, 429]
        assert (await http.get(path, headers={"X-Forwarded-For": "203.0.113.7"})).status_code == 401
        assert (await http.get("/v1/workspace", headers={"x-api-key": make_key()})).status_code == 200


async def test_too_many_invalid_keys_from_an_address_are_429_and_valid_ones_work(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    limits = Limits(failed_authentications_per_minute=3)
    good, fresh, expired = make_key(), make_key(name="fresh"), make_key(name="old", expires_at=1)
    proxies = Proxies(networks=(ip_network("127.0.0.0/8"),))
    async with _client(settings, good, limits=limits, proxies=proxies) as http:
        assert (await http.get("/v1/workspace")).status_code == 200
        bad = ("wrong", expired, "other", expired, "more")
        responses = [await http.get("/v1/workspace", headers={"x-api-key": key}) for key in bad]
        assert [response.status_code for response in responses] == [401, 401, 401, 429, 429]
        assert responses[-1].json()["code"] == "too_many_failed_authentications"
        assert 1 <= int(responses[-1].headers["Retry-After"]) <= 20
        assert (await http.get("/v1/workspace")).status_code == 200
        assert (await http.get("/v1/workspace", headers={"x-api-key": fresh})).status_code == 429
        elsewhere = {"x-api-key": fresh, "X-Forwarded-For": "203.0.113.7"}
        assert (await http.get("/v1/workspace", headers=elsewhere)).status_code == 200


async def test_the_addresses_of_an_ipv6_network_share_a_limit(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    limits = Limits(failed_authentications_per_minute=3, requests_per_minute=1, request_burst=3)
    proxies = Proxies(networks=(ip_network("127.0.0.0/8"),))
    async with _client(settings, None, limits=limits, proxies=proxies) as http:
        for key, code in (({}, "rate_limited"), ({"x-api-key": "wrong"}, "too_many_failed_authentications")):
            path = "/v1/workspace/00000000-0000-4000-8000-000000000000"
            sent = [await http.get(path, headers={**key, "X-Forwarded-For": f"2001:db8::{n}"}) for n in range(1, 5)]
            assert [response.status_code for response in sent] == [401, 401, 401, 429]
            assert sent[-1].json()["code"] == code
            elsewhere = {**key, "X-Forwarded-For": "2001:db8:0:1::1"}
            assert (await http.get(path, headers=elsewhere)).status_code == 401
    async with _client(settings, make_key()) as http:  # the first service has written its audit rows when it ends
        rows = (await http.get("/v1/audit-log?action=authentication.refused")).json()
        assert sorted(row["ip"] for row in rows) == ["2001:db8:0:1::1", "2001:db8::1"]


async def test_a_client_does_not_choose_its_address_by_a_line_before_that_of_its_proxy(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20, P6
    limits = Limits(failed_authentications_per_minute=3)
    proxies = Proxies(networks=(ip_network("127.0.0.0/8"),))
    async with _client(settings, make_key(), limits=limits, proxies=proxies) as http:
        statuses = []
        for number in range(6):
            lines = [("X-Forwarded-For", f"203.0.113.{number}"), ("X-Forwarded-For", "198.51.100.7")]
            wrong = await http.get("/v1/workspace", headers=[("x-api-key", "wrong"), *lines])
            page = await http.post("/ui/sign-in", data={"key": "wrong"}, headers=lines)
            statuses += [wrong.status_code, page.status_code]
    assert statuses[:3] == [401, 401, 401]
    assert set(statuses[3:]) == {429}


async def test_signing_in_counts_as_a_request_of_the_key(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G20
    key = make_key()
    async with _client(settings, None, limits=Limits(requests_per_minute=1, request_burst=3)) as http:
        pages = [await http.post("/ui/sign-in", data={"key": key}) for _ in range(4)]
        assert [page.status_code for page in pages] == [303, 303, 303, 429]
        assert 1 <= int(pages[-1].headers["Retry-After"]) <= 60
        assert (await http.get("/v1/workspace", headers={"x-api-key": key})).status_code == 429
        assert (await http.get("/v1/workspace", headers={"x-api-key": make_key(name="other")})).status_code == 200


async def test_failed_authentications_are_in_the_audit_log_once_a_minute_and_address(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    key, expired = make_key(), make_key(name="old", expires_at=1)
    async with _client(settings, key) as http:
        for _ in range(5):
            refused = await http.get("/v1/workspace", headers={"x-api-key": expired, "X-Request-Id": "r1"})
            assert refused.status_code == 401
    async with _client(settings, key) as http:
        rows = (await http.get("/v1/audit-log?action=authentication.refused")).json()
    assert [(row["keyId"], row["requestId"], row["ip"], row["principal"]) for row in rows] == [
        (expired[4:12], "r1", "127.0.0.1", "")
    ]


async def test_the_prefix_of_visible_ids_is_fixed_at_the_first_start(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract S4
    key = make_key()
    async with _client(settings, key, visible_id_prefix="BUD") as http:
        workspace = (await http.post("/v1/workspace", json={"label": "a"})).json()["id"]
        sinks = f"/v1/workspace/{workspace}/data-sink"
        assert (await http.post(sinks, json={"label": "s"})).json()["visibleId"] == "BUD-1"
    async with _client(settings, key) as http:
        assert (await http.get(f"{sinks}/bud-1")).json()["visibleId"] == "BUD-1"
        assert (await http.get(f"{sinks}/SNK-1")).status_code == 404
    with pytest.raises(StorageUnusable, match="WORKSPACED_VISIBLE_ID_PREFIX is 'SNK', but this data was created with"):
        async with _client(settings, key, visible_id_prefix="SNK"):
            raise AssertionError("it has started")
