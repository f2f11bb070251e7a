"""Every status has its exception class in both clients, and no exception contains a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient, Client
from ingestd.client import errors as kinds
from ingestd.client.errors import Redirected, ServiceError, Unavailable, UnreadableResponse
from tests.support.client_calls import AnyClient, done

SECRET = "edw_very-secret-key"
Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(params=["blocking", "asynchronous"])
def client_of(request: pytest.FixtureRequest) -> Callable[[Handler], AnyClient]:
    def make(handler: Handler) -> AnyClient:
        kind = Client if request.param == "blocking" else AsyncClient
        return kind("http://user:hidden@service.test", api_key=SECRET, transport=httpx.MockTransport(handler))

    return make


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (304, "NotModified"),
        (302, "Redirected"),
        (400, "BadRequest"),
        (401, "Unauthenticated"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (405, "Refused"),
        (409, "Conflict"),
        (410, "NotFound"),
        (412, "PreconditionFailed"),
        (413, "TooLarge"),
        (415, "UnsupportedMediaType"),
        (418, "Refused"),
        (422, "Unprocessable"),
        (429, "RateLimited"),
        (500, "ServerError"),
        (502, "ServerError"),
        (503, "Unavailable"),
    ],
)
async def test_each_status_raises_its_exception_class(
    client_of: Callable[[Handler], AnyClient], status: int, kind: str
) -> None:
    client = client_of(lambda _: httpx.Response(status, json={"detail": "It is so."}))
    with pytest.raises(ServiceError) as caught:
        await done(client.get_sink("w", "s"))
    assert type(caught.value) is getattr(kinds, kind)
    assert caught.value.status == status
    assert f"({status})" in str(caught.value)
    for text in (str(caught.value), repr(caught.value), repr(vars(caught.value)), repr(client)):
        assert SECRET not in text
        assert "hidden" not in text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"detail": "/label can't be blank.", "errors": [("/label", "/label can't be blank.")]},
            "/label can't be blank.",
        ),
        (
            {"detail": "2 errors.", "errors": [("/label", "/label can't be blank."), ("/key", "It is no text.")]},
            "2 errors. (/label can't be blank.; /key: It is no text.)",
        ),
        ({"title": "Bad Request", "errors": [("", "It is no object.")]}, "Bad Request (It is no object.)"),
        ({"detail": "It is blank.", "errors": [("/label", "It is blank.")]}, "It is blank. (/label)"),
        ({"title": "Bad Request", "errors": [("/label", "")]}, "Bad Request (/label: invalid)"),
    ],
)
async def test_an_exception_says_each_sentence_once(
    client_of: Callable[[Handler], AnyClient], body: dict[str, Any], said: str
) -> None:
    errors = [{"pointer": pointer, "code": "invalid", "detail": detail} for pointer, detail in body["errors"]]
    client = client_of(lambda _: httpx.Response(400, json={**body, "errors": errors}))
    with pytest.raises(ServiceError) as caught:
        await done(client.get_sink("w", "s"))
    assert str(caught.value).endswith(f" (400). The service says: {said}")


async def test_an_exception_has_the_time_to_wait(client_of: Callable[[Handler], AnyClient]) -> None:
    client = client_of(lambda _: httpx.Response(503, headers={"Retry-After": "3600"}))
    with pytest.raises(Unavailable) as caught:
        await done(client.list_workspaces())
    assert caught.value.retry_after == 3600


async def test_a_redirect_is_not_followed_and_its_target_is_reported(client_of: Callable[[Handler], AnyClient]) -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(308, headers={"Location": "https://elsewhere.test/v1?token=hidden"})

    client = client_of(handler)
    with pytest.raises(Redirected, match="Redirects are not followed") as caught:
        await done(client.list_workspaces())
    assert (caught.value.location, set(seen)) == ("https://elsewhere.test/v1", {"service.test"})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", ""),
        (b"<html>", ""),
        (b'{"id": "s"}', " Object missing required field `label`."),
        (b'{"id": "s", "label": 3}', " Expected `str`, got `int` - at `$.label`."),
    ],
)
async def test_a_success_without_a_record_is_unreadable(
    client_of: Callable[[Handler], AnyClient], body: bytes, reason: str
) -> None:
    client = client_of(lambda _: httpx.Response(200, content=body))
    with pytest.raises(UnreadableResponse) as caught:
        await done(client.get_sink("w", "s"))
    assert (
        str(caught.value) == f"data_sinks.get: The response has status 200 but not the content of the service.{reason}"
    )


async def test_a_response_about_another_key_is_unreadable(client_of: Callable[[Handler], AnyClient]) -> None:
    stamp = "2026-01-01T00:00:00.000Z"
    entry = {
        **dict.fromkeys(("id", "key", "dataSinkId", "value", "dataType", "createdBy", "updatedBy"), "x"),
        **dict.fromkeys(("createdAt", "updatedAt"), stamp),
    }
    client = client_of(lambda _: httpx.Response(200, json=entry))
    assert (await done(client.mass_update_entry("w", "s", key="x", value="x"))).value == "x"
    with pytest.raises(UnreadableResponse, match="names another key"):
        await done(client.mass_update_entry("w", "s", key="y", value="x"))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            {"detail": "/0/key is blank.", "errors": [{"pointer": "/0/key", "detail": "/0/key is blank."}]},
            "/0/key is blank.",
        ),
        ({"title": "Bad", "errors": [{"pointer": "/a", "detail": "/a is blank."}]}, "Bad (/a is blank.)"),
        ({"title": "Bad", "errors": [{"pointer": "/a", "code": "blank"}]}, "Bad (/a: blank)"),
        ({"detail": "The service does not accept the content of the request."}, ""),
    ],
)
async def test_an_error_says_each_sentence_once(
    client_of: Callable[[Handler], AnyClient], problem: dict[str, object], words: str
) -> None:
    client = client_of(lambda _: httpx.Response(400, json=problem))
    with pytest.raises(ServiceError) as caught:
        await done(client.list_workspaces())
    said = f" The service says: {words}" if words else ""
    assert str(caught.value) == f"workspaces.list: The service does not accept the content of the request (400).{said}"
