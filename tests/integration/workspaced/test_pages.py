"""The pages without a browser: sessions, forms, headers, and that no page shows more than the API."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.support.api_client import api_client
from workspaced.app import Application, running
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

OWN = {"Origin": "http://service"}


@asynccontextmanager
async def visiting(app: Application, *, client: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    """Return a client without scripts that stores cookies, and does not follow redirects."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as browser:
        yield browser


async def sign_in(browser: httpx.AsyncClient, key: str, **form: str) -> httpx.Response:
    return await browser.post("/ui/sign-in", data={"key": key, **form}, headers=OWN)


async def form_token(browser: httpx.AsyncClient) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', (await browser.get("/ui/workspaces")).text)
    assert found
    return found[1]


@pytest.fixture
async def browser(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(app) as client:
        yield client


@pytest.fixture
async def http(app: Application, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with api_client(app, make_key()) as client:
        yield client


async def test_a_request_without_a_session_is_sent_to_sign_in_and_then_to_the_page(
    browser: httpx.AsyncClient, make_key: MakeKey
) -> None:
    refused = await browser.get("/ui/webhooks?skip=50")
    assert (refused.status_code, refused.headers["Location"]) == (
        303,
        "/ui/sign-in?next=%2Fui%2Fwebhooks%3Fskip%3D50",
    )
    form = await browser.get(refused.headers["Location"])
    assert 'value="/ui/webhooks?skip=50"' in form.text
    entered = await sign_in(browser, make_key(), next="/ui/webhooks?skip=50")
    assert (entered.status_code, entered.headers["Location"]) == (303, "/ui/webhooks?skip=50")
    assert (await browser.get("/ui/webhooks")).status_code == 200


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", ""])
async def test_signing_in_redirects_to_pages_of_the_service_only(
    browser: httpx.AsyncClient, make_key: MakeKey, elsewhere: str
) -> None:
    assert (await sign_in(browser, make_key(), next=elsewhere)).headers["Location"] == "/ui/workspaces"


async def test_scripts_cannot_read_the_cookie_and_the_key_is_in_no_response_and_no_table(
    browser: httpx.AsyncClient, make_key: MakeKey, settings: WorkspacedSettings
) -> None:
    key = make_key()
    entered = await sign_in(browser, key)
    cookie = entered.headers["Set-Cookie"]
    assert re.fullmatch(r"workspaced_session=[\w-]{43}; Path=/ui; Max-Age=43200; HttpOnly; SameSite=Strict", cookie), (
        cookie
    )
    token = cookie.partition("=")[2].partition(";")[0]
    shown = await browser.get("/ui/workspaces")
    assert key not in shown.text
    assert token not in shown.text
    for table in ("page_session", "api_key", "api_key_secret", "audit_row"):
        kept = repr(transact(settings.database, lambda tx, table=table: tx.all(f"SELECT * FROM {table}")))  # type: ignore[misc]
        assert key not in kept
        assert token not in kept


async def test_behind_a_trusted_https_proxy_the_cookie_is_secure(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    proxies = Proxies(networks=(ip_network("10.0.0.0/8"),))
    async with running(dataclasses.replace(settings, proxies=proxies)) as app:
        forwarded = {**OWN, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        for peer, secure in (("10.1.2.3", True), ("192.0.2.9", False)):
            async with visiting(app, client=peer) as browser:
                entered = await browser.post("/ui/sign-in", data={"key": make_key(f"k{peer}")}, headers=forwarded)
                assert entered.headers["Set-Cookie"].endswith("; Secure") is secure


async def test_a_wrong_key_is_reported_and_sets_no_cookie(browser: httpx.AsyncClient, make_key: MakeKey) -> None:
    for key in ("", "nonsense", make_key()[:-1] + "!"):
        refused = await sign_in(browser, key)
        assert refused.status_code == 401
        assert "That key is not valid" in refused.text
        assert "Set-Cookie" not in refused.headers
        assert "nonsense" not in refused.text


async def test_wrong_keys_count_as_in_the_api(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    limits = Limits(requests_per_minute=0, failed_authentications_per_minute=3)
    async with running(dataclasses.replace(settings, limits=limits)) as app, visiting(app) as browser:
        assert [(await sign_in(browser, "wrong")).status_code for _ in range(4)] == [401, 401, 401, 429]
        assert (await browser.get("/v1/workspace", headers={"x-api-key": make_key()})).status_code == 429
        limited = await sign_in(browser, make_key("other"))
        assert "Retry-After" in limited.headers
        assert "Too many requests from this address" in limited.text


async def test_signing_out_ends_the_session_for_all_copies_of_its_cookie(
    app: Application, browser: httpx.AsyncClient, make_key: MakeKey
) -> None:
    await sign_in(browser, make_key())
    token = await form_token(browser)
    async with visiting(app) as thief:
        thief.cookies.update(browser.cookies)
        assert (await thief.get("/ui/workspaces")).status_code == 200
        gone = await browser.post("/ui/sign-out", data={"form_token": token}, headers=OWN)
        assert (gone.status_code, gone.headers["Location"]) == (303, "/ui/sign-in")
        assert "Max-Age=0" in gone.headers["Set-Cookie"]
        assert (await thief.get("/ui/workspaces")).status_code == 303


async def test_a_session_expires_and_is_deleted(
    settings: WorkspacedSettings, app: Application, browser: httpx.AsyncClient, make_key: MakeKey
) -> None:
    await sign_in(browser, make_key())
    transact(settings.database, lambda tx: tx.run("UPDATE page_session SET expires_at = 1"))
    assert (await browser.get("/ui/workspaces")).status_code == 303
    await app.run_maintenance()
    assert transact(settings.database, lambda tx: tx.one("SELECT count(*) FROM page_session")) == (0,)


async def test_signing_in_and_out_is_in_the_audit_log(
    browser: httpx.AsyncClient, http: httpx.AsyncClient, make_key: MakeKey
) -> None:
    await sign_in(browser, make_key("anna"))
    await browser.post("/ui/sign-out", data={"form_token": await form_token(browser)}, headers=OWN)
    rows = (await http.get("/v1/audit-log", params={"action": "page_session.*"})).json()
    assert [(row["action"], row["principal"], row["ip"]) for row in rows] == [
        ("page_session.deleted", "anna", "127.0.0.1"),
        ("page_session.created", "anna", "127.0.0.1"),
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site", **OWN},
    ],
)
async def test_a_form_of_another_site_has_no_effect(
    browser: httpx.AsyncClient, make_key: MakeKey, headers: dict[str, str]
) -> None:
    key = make_key()
    refused = await browser.post("/ui/sign-in", data={"key": key}, headers=headers)
    assert (refused.status_code, "Set-Cookie" in refused.headers) == (403, False)
    await sign_in(browser, key)
    token = await form_token(browser)
    assert (await browser.post("/ui/sign-out", data={"form_token": token}, headers=headers)).status_code == 403
    assert (await browser.get("/ui/workspaces")).status_code == 200


async def test_a_form_without_the_token_of_the_session_has_no_effect(
    browser: httpx.AsyncClient, make_key: MakeKey
) -> None:
    await sign_in(browser, make_key())
    for form in ({}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": "é"}):
        refused = await browser.post("/ui/sign-out", data=form, headers=OWN)
        assert refused.status_code == 403
        assert "from another session" in refused.text
    assert (await browser.get("/ui/workspaces")).status_code == 200


async def test_an_unreadable_form_is_rejected_with_a_page(browser: httpx.AsyncClient) -> None:
    assert (await browser.post("/ui/sign-in", content=b"key=%ff", headers=OWN)).status_code == 400
    assert (await browser.post("/ui/sign-in", content=b"a=1&" * 50, headers=OWN)).status_code == 400
    assert (await browser.post("/ui/sign-in", content=b"key=" + b"x" * 9_000, headers=OWN)).status_code == 413


async def test_every_page_has_a_content_security_policy_and_is_not_cached(
    browser: httpx.AsyncClient, make_key: MakeKey
) -> None:
    pages = [await browser.get("/ui/sign-in"), await browser.get("/ui/nothing")]
    await sign_in(browser, make_key())
    pages += [await browser.get("/ui/workspaces"), await browser.get("/ui/webhooks")]
    for page in pages:
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Referrer-Policy"] == "same-origin"
        assert not re.search(r"<(script|style)(?![^>]*src=)[^>]*>[^<]|\sstyle=|\son\w+=|javascript:", page.text)
        assert not re.search(r"(src|href|action)=\"(?!/ui|#content)", page.text)


async def test_an_address_in_another_case_is_the_same_page(browser: httpx.AsyncClient, make_key: MakeKey) -> None:
    await sign_in(browser, make_key())
    assert "<h1>Sign in</h1>" in (await browser.get("/ui/sign%2Din")).text
    assert (await browser.get("/ui/%77orkspaces")).status_code == 200
    assert (await browser.get("/ui/sign%2Dout")).status_code == 405
    assert (await browser.post("/ui/sign%2Dout", headers=OWN)).status_code == 403
    assert (await browser.get("/ui/workspaces")).status_code == 200


async def test_style_and_script_are_cached_by_their_content(browser: httpx.AsyncClient) -> None:
    page = (await browser.get("/ui/sign-in")).text
    for kind, media_type in (("css", "text/css"), ("js", "text/javascript"), ("svg", "image/svg+xml")):
        found = re.search(rf'"(/ui/assets/\w+\.[0-9a-f]{{16}}\.{kind})"', page)
        assert found
        asset = await browser.get(found[1])
        assert asset.headers["Content-Type"].startswith(media_type)
        assert asset.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        again = await browser.get(found[1], headers={"If-None-Match": asset.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await browser.get(found[1].replace("ui.", "ui.0").replace("icon.", "icon.0"))).status_code == 404


async def test_unknown_addresses_and_methods_have_a_page(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/ui/nothing/here")).status_code == 404
    assert (await browser.get("/ui/%ff")).status_code == 404
    assert (await browser.get("/ui/workspaces/")).status_code == 404
    wrong = await browser.put("/ui/sign-in")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    for of_the_api in ("/uix", "/%75i", "/v1/ui", "/"):
        assert (await browser.get(of_the_api)).headers["Content-Type"] == "application/problem+json"
    head = await browser.head("/ui/sign-in")
    assert (head.status_code, head.content) == (200, b"")


@pytest.fixture
async def rocket(http: httpx.AsyncClient) -> str:
    """Return the id of a workspace with a data sink SNK-1 that has an entry."""
    workspace: dict[str, Any] = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()
    path = f"/v1/workspace/{workspace['id']}/data-sink"
    created = await http.post(path, json={"label": "Masses", "entries": [{"key": "a/b", "dataType": "scalar"}]})
    assert created.status_code == 201, created.text
    return str(workspace["id"])


async def test_a_key_of_another_workspace_gets_only_a_message(
    browser: httpx.AsyncClient, http: httpx.AsyncClient, make_key: MakeKey, rocket: str
) -> None:
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    await sign_in(browser, make_key("guest", role="reader", workspace_id=other))
    listed = (await browser.get("/ui/workspaces")).text
    assert "Other" in listed
    assert "Rocket" not in listed
    for page in ("", "/blocks", "/files", "/sinks/SNK-1", "/sinks/SNK-1/entries/a%2Fb", "/sinks/SNK-1/entries.csv"):
        refused = await browser.get(f"/ui/workspaces/{rocket}{page}")
        assert refused.status_code == 403, page
        assert "does not give the permission" in refused.text
        assert "Masses" not in refused.text


async def test_a_key_without_permission_to_read_webhooks_gets_a_message(
    browser: httpx.AsyncClient, make_key: MakeKey, rocket: str
) -> None:
    await sign_in(browser, make_key("daemon", role="pusher"))
    assert (await browser.get(f"/ui/workspaces/{rocket}/sinks/SNK-1")).status_code == 200
    refused = await browser.get("/ui/webhooks")
    assert refused.status_code == 403
    assert "does not give the permission" in refused.text


async def test_an_entry_with_any_key_has_a_page(browser: httpx.AsyncClient, make_key: MakeKey, rocket: str) -> None:
    await sign_in(browser, make_key("reader", role="reader"))
    page = await browser.get(f"/ui/workspaces/{rocket}/sinks/SNK-1")
    address, history = re.findall(r'href="([^"]+/entries/[^"]+)"', page.text)
    assert address.endswith("/entries/a%2Fb")
    assert history == f"{address}/history"
    shown = await browser.get(address)
    assert "<bdi>a/b</bdi>" in shown.text
    assert ">null<" in shown.text


async def test_invalid_ids_are_404(browser: httpx.AsyncClient, make_key: MakeKey, rocket: str) -> None:
    await sign_in(browser, make_key())
    assert (await browser.get("/ui/webhooks/nothing")).status_code == 404
    for page in ("/ui/workspaces/nothing", f"/ui/workspaces/{rocket}/sinks/list"):
        assert (await browser.get(page)).status_code == 400, page
    assert (await browser.get(f"/ui/workspaces/{rocket}/sinks/SNK-1/entries/nothing")).status_code == 404


async def test_pages_count_towards_the_rate_limit_of_the_key(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    limits = Limits(requests_per_minute=60, request_burst=3)  # signing in is one request
    async with running(dataclasses.replace(settings, limits=limits)) as app, visiting(app) as browser:
        await sign_in(browser, make_key())
        responses = [(await browser.get("/ui/workspaces")).status_code for _ in range(3)]
        assert responses == [200, 200, 429]


async def test_csv_is_a_download_with_the_sinks_name(
    browser: httpx.AsyncClient, make_key: MakeKey, rocket: str
) -> None:
    await sign_in(browser, make_key())
    saved = await browser.get(f"/ui/workspaces/{rocket}/sinks/SNK-1/entries.csv")
    assert saved.headers["Content-Disposition"] == 'attachment; filename="SNK-1.csv"'
    assert saved.text.splitlines()[1].startswith('"a/b",,scalar,')


async def test_external_callers_cannot_set_the_identity_of_internal_requests(
    http: httpx.AsyncClient, rocket: str
) -> None:
    forged = await http.get(
        f"/v1/workspace/{rocket}", headers={"x-api-key": "wrong", "inside": "principal", "state": "inside"}
    )
    assert forged.status_code == 401
