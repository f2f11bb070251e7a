"""The client with responses of all kinds: each result is a value, and no result contains a secret."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from ingestd.client.operations import ServiceMethods
from ingestd.client.records import SinkSummary, WorkspaceSummary, WrittenEntry
from ingestd.client.request import Unaddressable
from ingestd.client.response import MAX_BODY_BYTES, ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.delivery.sink_rows import row_of
from ingestd.telemetry.request_counts import RequestCounts
from ingestd.wire.bulk import BulkLimits
from ingestd.wire.names import KEY_EXPIRES

SECRET = "edw_very-secret-key"


def client(handler: Callable[[httpx.Request], httpx.Response], url: str = "http://service.test") -> ServiceClient:
    return ServiceClient(
        url=url, api_key=SECRET, client_id="bench-3", transport=httpx.MockTransport(handler), now=lambda: 0.0
    )


def sends(response: httpx.Response) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: response


def raises(error: Exception, cause: Exception | None = None) -> Callable[[httpx.Request], httpx.Response]:
    def handler(_: httpx.Request) -> httpx.Response:
        raise error from cause

    return handler


@pytest.mark.parametrize(
    ("key", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("kg²", "kg%C2%B2"),
        ("x y+z", "x%20y%2Bz"),
        ("?#", "%3F%23"),
        ("...", "..."),
        ("a\\b", "a%5Cb"),
    ],
)
async def test_a_key_is_percent_encoded_in_a_path(key: str, segment: str) -> None:
    seen: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(200)

    async with client(handler, "http://service.test/prefix/") as service:
        assert (await service.delete_entry("w", "s", key=key)).ok
    assert seen == [f"/prefix/v1/workspace/w/data-sink/s/{segment}".encode()]


@pytest.mark.parametrize("key", ["", ".", ".."])
def test_a_key_that_no_path_can_contain_is_rejected_with_a_sentence(key: str) -> None:
    with pytest.raises(Unaddressable, match="can't be addressed in a URL"):
        _ = ServiceMethods.delete_entry.build("w", "s", key).path


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ({"id": "w", "label": "Bench", "rootBlock": "b", "new": 1}, ["Bench"]),
        ([{"id": "w", "label": "Bench"}, {"id": "v", "label": "Other", "blocks": []}], ["Bench", "Other"]),
        ([], []),
    ],
)
async def test_the_list_of_workspaces_can_be_a_record_or_a_list(body: object, labels: list[str]) -> None:
    async with client(sends(httpx.Response(200, json=body))) as service:
        response = await service.list_workspaces()
    assert response.value is not None
    assert [workspace.label for workspace in response.value] == labels


async def test_unknown_members_are_ignored_and_missing_ones_are_tolerated() -> None:
    # contract G22
    sinks = [{"id": "s", "label": "L", "icon": "{ source: 'x' }", "serial": 1.0, "extra": {}}, {"id": "t"}]
    headers = {"X-Bulk-Mass": "max-items=5000, max-bytes=16777216"}
    async with client(sends(httpx.Response(200, json=sinks, headers=headers))) as service:
        response = await service.list_sinks("w")
    assert response.value == (SinkSummary(id="s", label="L"), SinkSummary(id="t"))
    assert response.bulk == BulkLimits(max_items=5000, max_bytes=16777216)


async def test_a_problem_response_keeps_all_its_members() -> None:
    problem = {
        "title": "Invalid request",
        "error": "Invalid request",
        "detail": "The key is blank.",
        "code": "blank",
        "requestId": "r-7",
        "errors": [{"pointer": "/3/key", "code": "blank", "detail": "must not be blank"}, "noise"],
    }
    async with client(sends(httpx.Response(422, json=problem, headers={"Retry-After": "9"}))) as service:
        response = await service.delete_entry("w", "s", key="k")
    assert not response.ok
    assert response.problem is not None
    assert (response.problem.status, response.problem.code, response.problem.request_id) == (422, "blank", "r-7")
    assert [(error.pointer, error.detail) for error in response.problem.errors] == [("/3/key", "must not be blank")]
    assert response.outcome.retry_after_seconds == 9
    assert "The service says: The key is blank. (/3/key: must not be blank)" in response.outcome.sentence


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff\xfe", b'{"error":', b'{"error":7,"errors":{}}'])
async def test_an_unreadable_problem_has_its_status(body: bytes) -> None:
    headers = {"X-Request-Id": "r-1", "X-Error-Code": "some_code"}
    async with client(sends(httpx.Response(400, content=body, headers=headers))) as service:
        response = await service.delete_entry("w", "s", key="k")
    assert response.problem is not None
    assert (response.problem.status, response.problem.request_id, response.problem.code) == (400, "r-1", "some_code")
    assert response.outcome.remedy == "reject"


async def test_a_long_message_of_the_service_is_shortened() -> None:
    async with client(sends(httpx.Response(400, json={"detail": "x" * 100_000}))) as service:
        response = await service.delete_entry("w", "s", key="k")
    assert len(response.outcome.sentence) < 700


@pytest.mark.parametrize(
    "body", [b"", b"<html>ok</html>", b'{"key":"k"', b"{}", b'{"key":1}', b"null", b'{"key":"other","value":"1"}']
)
async def test_a_2xx_with_an_unexpected_body_is_no_success(body: bytes) -> None:
    async with client(sends(httpx.Response(200, content=body))) as service:
        response = await service.mass_update_entry(
            "w", "s", key="k", value="1", body=b'{"key":"k","value":"1"}', idempotency_key="i"
        )
    assert not response.ok
    assert (response.outcome.word, response.outcome.remedy) == ("unreachable", "retry")


@pytest.mark.parametrize(
    ("sent", "kept"), [("Mass", "mass"), ("mass ", "mass"), ("m\u00b2", "m2"), ("STRASSE", "stra\u00dfe")]
)
async def test_an_entry_that_the_service_keeps_under_another_key_is_rejected_with_both_keys(
    sent: str, kept: str
) -> None:
    async with client(sends(httpx.Response(200, json={"key": kept, "value": "1"}))) as service:
        response = await service.mass_update_entry("w", "s", key=sent, value="1", body=b"{}", idempotency_key="i")
    assert (response.outcome.word, response.outcome.remedy) == ("rejected", "reject")
    assert f"The response has '{kept}' in the place of '{sent}'." in response.outcome.sentence


@pytest.mark.parametrize(
    ("sent", "kept", "sentence"),
    [
        (" x y ", "x y", "The sent value is ' x y ', and the response has 'x y'."),
        ("0.20", "0.2", "The sent value is '0.20', and the response has '0.2'."),
        ("1" * 900, "1" * 800, "They differ from character 801 on."),
        ("1" * 900 + "a", "1" * 900 + "b", "They differ from character 901 on."),
        ("x", None, "The sent value is 'x', and the response has no value."),
        (None, "x", "The sent value is no value, and the response has 'x'."),
    ],
)
async def test_an_entry_with_another_value_than_was_sent_is_rejected_with_both_values(
    sent: str | None, kept: str | None, sentence: str
) -> None:
    async with client(sends(httpx.Response(201, json={"key": "k", "value": kept}))) as service:
        responses = (
            await service.create_entry("w", "s", key="k", value=sent, body=b"{}", idempotency_key="i"),
            await service.patch_entry("w", "s", key="k", value=sent, data_type=None),
        )
    for response in responses:
        assert (response.outcome.word, response.outcome.remedy) == ("rejected", "reject")
        assert sentence in response.outcome.sentence


async def test_a_key_or_value_that_the_service_normalises_is_the_same() -> None:
    async with client(sends(httpx.Response(200, json={"key": "\u00e9", "value": "\u00e9"}))) as service:
        response = await service.mass_update_entry(
            "w", "s", key="e\u0301", value="e\u0301", body=b"{}", idempotency_key="i"
        )
    assert response.value == WrittenEntry(key="\u00e9", value="\u00e9")


async def test_a_response_to_a_write_may_omit_the_value() -> None:
    async with client(sends(httpx.Response(200, json={"key": "k"}))) as service:
        assert (await service.mass_update_entry("w", "s", key="k", value="1", body=b"{}", idempotency_key="i")).ok


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        ({"accepted": 2, "created": 1, "updated": 1, "unchanged": 0, "deleted": 0}, True),
        ([{"key": "a"}, {"key": "b"}], True),
        ({"entries": [{"key": "a"}, {"key": "b"}]}, True),
        ({"results": [{"index": 1, "status": 200}, {"index": 0, "status": 400}]}, True),
        ({"accepted": 1}, False),
        ({"accepted": 3}, False),
        ([{"key": "a"}], False),
        ({"results": [{"index": 0, "status": 200}, {"index": 0, "status": 200}]}, False),
        ({"key": "a", "value": "1"}, False),
        ("ok", False),
    ],
)
async def test_a_bulk_response_must_account_for_each_item_once(body: object, accepted: bool) -> None:
    async with client(sends(httpx.Response(200, json=body))) as service:
        response = await service.mass_update("w", "s", body=b"[1,2]", items=2, idempotency_key="i")
    assert response.ok is accepted


@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [
        (httpx.ConnectError("x"), ConnectionRefusedError(), "Nothing listens"),
        (httpx.ConnectError("x"), socket.gaierror(-2, "x"), "cannot be resolved"),
        (httpx.ConnectError("x"), ssl.SSLCertVerificationError("x"), "TLS"),
        (httpx.ConnectTimeout("x"), None, "too long to accept the connection"),
        (httpx.WriteTimeout("x"), None, "too long to read the request"),
        (httpx.ReadTimeout("x"), None, "too long to respond"),
        (httpx.PoolTimeout("x"), None, "All connections"),
        (httpx.ReadError("x"), None, "The connection broke"),
        (httpx.RemoteProtocolError("x"), None, "The connection broke"),
        (httpx.DecodingError("x"), None, "not the content"),
        (httpx.UnsupportedProtocol("x"), None, "not valid HTTP"),
    ],
)
async def test_each_kind_of_missing_response_is_distinguished(
    error: Exception, cause: Exception | None, words: str
) -> None:
    async with client(raises(error, cause)) as service:
        response = await service.list_sinks("w")
    assert words in response.outcome.sentence
    assert (response.outcome.word, response.status) == ("unreachable", None)


async def test_a_redirect_is_not_followed() -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(307, headers={"Location": "https://elsewhere.test/v1"})

    async with client(handler) as service:
        response = await service.list_sinks("w")
    assert len(seen) == 1
    assert "https://elsewhere.test/v1" in response.outcome.sentence
    assert response.outcome.remedy == "pause"


async def test_the_api_key_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[object] = []
    async with client(raises(httpx.ConnectError("x")), "http://user:hidden@service.test:1") as service:
        response: ServiceResponse[tuple[WorkspaceSummary, ...]] = await service.list_workspaces()
        shown += [service, response, vars(response) if hasattr(response, "__dict__") else response, service.address]
    for text in (*map(repr, shown), *map(str, shown), caplog.text):
        assert SECRET not in text
        assert "hidden" not in text


@pytest.mark.parametrize("key", ["", "two\nlines", "schlüssel", "a b"])
def test_an_api_key_that_no_header_can_contain_is_rejected_without_quoting_it(key: str) -> None:
    with pytest.raises(ValueError, match="API key") as caught:
        ServiceClient(url="http://service.test", api_key=key, client_id="c")
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("client_id", ["", "x" * 129, "a b", "ü"])
def test_an_invalid_client_id_is_rejected_immediately(client_id: str) -> None:
    with pytest.raises(ValueError, match="client id"):
        ServiceClient(url="http://service.test", api_key="k", client_id=client_id)


async def test_a_created_sink_must_list_the_sent_entries() -> None:
    created = httpx.Response(201, json={"id": "s", "label": "L", "entries": [{"key": "a"}]})
    async with client(sends(created)) as service:
        complete = await service.create_sink("w", body=b"{}", keys=["a"], idempotency_key="i")
        short = await service.create_sink("w", body=b"{}", keys=["a", "b"], idempotency_key="i")
    assert complete.ok
    assert "lacks 1 of 2 entries" in short.outcome.sentence


async def test_a_sink_is_read_in_pieces() -> None:
    entries = [{"key": f"K-{n}", "value": str(n), "dataType": "scalar"} for n in range(1000)]
    content = json.dumps({"id": "s", "entries": entries, "label": "L"}).encode()
    taken: list[int] = []
    rows: list[tuple[str, str | None, str | None]] = []

    async def take(piece: list[tuple[str, str | None, str | None]]) -> None:
        taken.append(len(piece))
        rows.extend(piece)

    async with client(sends(httpx.Response(200, content=content))) as service:
        response = await service.read_sink("w", "s", take, row_of, rows_at_once=1)
    assert response.value == 1000
    assert rows == [(f"K-{n}", str(n), "scalar") for n in range(1000)]


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b'{"id":"s"}', b'{"entries":[{"key":"a"}', b'{"entries":[{"id":1}]}']
)
async def test_a_truncated_or_invalid_sink_does_not_count_as_read(content: bytes) -> None:
    async def take(_: object) -> None:
        """Entries before the end of a truncated body may be returned; the result says that they are incomplete."""

    async with client(sends(httpx.Response(200, content=content))) as service:
        response = await service.read_sink("w", "s", take, row_of)
    assert not response.ok
    assert response.outcome.remedy == "retry"


async def test_a_reading_with_a_replaced_key_is_repeated_once_with_the_stored_key() -> None:
    used: list[str] = []
    stored = "old"

    def handle(request: httpx.Request) -> httpx.Response:
        used.append(request.headers["x-api-key"])
        return httpx.Response(401) if used[-1] == "old" else httpx.Response(200, content=b'{"entries":[]}')

    async def take(_: object) -> None:
        """The sink has no entries."""

    transport = httpx.MockTransport(handle)
    async with ServiceClient(
        url="http://service.test", api_key="old", client_id="t", transport=transport, read_api_key=lambda: stored
    ) as service:
        assert (await service.read_sink("w", "s", take, row_of)).status == 401
        assert used == ["old"]
        stored = "new"
        assert (await service.read_sink("w", "s", take, row_of)).value == 0
    assert used == ["old", "old", "new"]


async def test_a_refusal_without_end_is_read_in_part() -> None:
    sent: list[int] = []

    async def parts() -> AsyncIterator[bytes]:
        while sum(sent) < 2 * MAX_BODY_BYTES:
            sent.append(65_536)
            yield bytes(65_536)

    async def take(_: object) -> None:
        """A refusal has no entries."""

    async with client(sends(httpx.Response(500, content=parts()))) as service:
        response = await service.read_sink("w", "s", take, row_of)
    assert response.outcome.sentence.startswith("The service failed (500).")
    assert sum(sent) <= MAX_BODY_BYTES + 65_536


async def test_a_response_without_end_is_broken_also_over_a_proxy() -> None:
    sent: list[int] = []

    async def parts() -> AsyncIterator[bytes]:
        while sum(sent) < 2 * MAX_BODY_BYTES:
            sent.append(65_536)
            yield b" " * 65_536

    async with client(sends(httpx.Response(200, content=parts()))) as service:
        response = await service.delete_entry("w", "s", key="k")
    assert response.outcome.sentence.startswith("The connection broke before the response was complete.")
    assert sum(sent) <= MAX_BODY_BYTES + 65_536


@pytest.mark.parametrize(
    ("announced", "expected"),
    [
        ("2026-12-01T10:00:00.000Z", 1_796_119_200.0),
        ("2026-12-01T11:00:00+01:00", 1_796_119_200.0),
        ("2026-12-01T10:00:00", None),
        ("soon", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("", None),
    ],
)
async def test_the_end_of_the_key_is_that_of_the_last_response(announced: str, expected: float | None) -> None:
    response = httpx.Response(200, json=[], headers={KEY_EXPIRES: announced})
    assert await end_of_key_after(response, before=1.0) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (httpx.Response(502, text="<html>Bad Gateway</html>"), 1.0),
        (httpx.Response(200, text="<html>Please sign in</html>"), 1.0),
        (
            httpx.Response(404, json={"error": "Not found"}, headers={KEY_EXPIRES: "2026-12-01T10:00:00Z"}),
            1_796_119_200.0,
        ),
        (httpx.Response(401, json={"error": "Unauthenticated"}), None),
        (httpx.Response(200, json=[]), None),
    ],
)
async def test_a_proxy_does_not_change_the_end_of_the_key(response: httpx.Response, expected: float | None) -> None:
    assert await end_of_key_after(response, before=1.0) == expected


async def end_of_key_after(response: httpx.Response, *, before: float) -> float | None:
    counts = RequestCounts()
    counts.key_expires_at = before
    service = ServiceClient(
        url="http://service.test",
        api_key=SECRET,
        client_id="bench-3",
        transport=httpx.MockTransport(sends(response)),
        counts=counts,
    )
    await service.list_workspaces()
    return counts.key_expires_at
