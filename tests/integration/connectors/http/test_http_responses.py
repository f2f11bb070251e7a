"""Responses: unchanged ones, exact values, refusals, login pages, limits, and connections that break or stall."""

from __future__ import annotations

import base64
import gzip
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.http import HttpConnector
from connectors.http.exchange import AccessRefused
from ingestd.sdk import Batch, Partition, SourceBroken, SourceError, SourceUnavailable
from tests.support.rest_service import Asked, RestService, Sent

PARTITION = Partition(name="parts")
FULL = Path("/dev/full")
Connect = Callable[..., HttpConnector]


def read(connector: HttpConnector, cursor: Any = None) -> list[Batch]:
    return list(connector.read(PARTITION, cursor))


def test_an_unchanged_single_page_costs_one_304(service: RestService, connect: Connect) -> None:
    service.validates = True
    cursor = read(connect())[-1].cursor
    service.asked.clear()
    assert read(connect(), json.loads(json.dumps(cursor))) == []
    assert [asked.headers["if-none-match"][:1] for asked in service.asked] == ['"']


def test_one_changed_page_of_several_is_noticed(service: RestService, connect: Connect) -> None:
    service.validates = True
    service.paging = "next"
    cursor = read(connect())[-1].cursor
    service.records[7]["mass"] = "changed"
    batches = read(connect(), cursor)
    assert [mass for batch in batches for mass in batch.records["mass"].to_list()][7] == "changed"


def test_a_time_of_change_within_the_last_minute_is_not_trusted(service: RestService, connect: Connect) -> None:
    """Another change may follow within the same second."""
    now = {"Date": "Mon, 23 Nov 2026 10:00:30 GMT", "Last-Modified": "Mon, 23 Nov 2026 10:00:00 GMT"}
    service.before = lambda _: Sent({"data": [{"id": 1}]}, headers=now)
    assert read(connect())[-1].cursor["pages"] == []


def test_other_settings_read_everything(service: RestService, connect: Connect) -> None:
    service.validates = True
    cursor = read(connect())[-1].cursor
    assert read(connect(key=["id", "mass"]), cursor)


def test_values_keep_their_characters(service: RestService, connect: Connect) -> None:
    body = (
        b'{"data": [{"id": 1, "mass": 1.10, "n": 1e2, "big": 12345678901234567890, "list": [1.0], "at": {"x": null}}]}'
    )
    service.before = lambda _: Sent(raw=body)
    (batch,) = read(connect())
    assert batch.records.row(0, named=True) == {
        "id": "1", "mass": "1.10", "n": "1e2", "big": "12345678901234567890", "list": "[1.0]", "at.x": None,
    }  # fmt: skip


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_not_tried_again(service: RestService, connect: Connect, status: int) -> None:
    service.before = lambda _: Sent({"error": "no"}, status=status)
    connector = connect(auth={"type": "basic", "user": "reader", "password": "p4ssword"})
    for _ in range(3):
        with pytest.raises(AccessRefused, match="refuses the credentials"):
            read(connector)
    assert len(service.asked) == 1
    connector.resume()
    service.before = lambda _: None
    assert read(connector)


def test_a_token_is_fetched_kept_and_fetched_again_once_after_401(service: RestService, connect: Connect) -> None:
    issued: list[str] = []

    def before(asked: Asked) -> Sent | None:
        if asked.path == "/token":
            issued.append(asked.body.decode())
            return Sent({"access_token": f"t{len(issued)}", "token_type": "bearer"})
        valid = asked.headers.get("authorization") == f"Bearer t{max(2, len(issued))}"
        return None if valid else Sent({"error": "expired"}, status=401)

    service.before = before
    auth = {
        "type": "oauth2-client", "token_url": f"{service.url}/token", "client_id": "i", "client_secret": "s", "scope": "read",
    }  # fmt: skip
    connector = connect(auth=auth)
    assert read(connector)
    assert issued == ["grant_type=client_credentials&scope=read"] * 2
    assert read(connector)
    assert len(issued) == 2
    service.before = lambda asked: before(asked) if asked.path == "/token" else Sent({}, status=401)
    with pytest.raises(AccessRefused):
        read(connector)
    assert len(issued) == 3


def test_a_short_retry_after_is_waited_for(service: RestService, connect: Connect) -> None:
    service.before = lambda _: Sent({}, status=429, headers={"Retry-After": "0"}) if len(service.asked) < 3 else None
    assert read(connect())
    assert len(service.asked) == 3


def test_a_long_retry_after_ends_the_reading(service: RestService, connect: Connect) -> None:
    service.before = lambda _: Sent({}, status=503, headers={"Retry-After": "3600"})
    with pytest.raises(SourceUnavailable, match=r"status 503\. It asks for a wait of 3600 seconds") as caught:
        read(connect())
    assert caught.value.retry_after == 3600
    assert len(service.asked) == 1


def test_a_packed_page_can_not_fill_the_memory(
    service: RestService, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.http.exchange.PAGE_BYTES", 2**20)
    packed = gzip.compress(b'{"data": [' + b" " * 2**26 + b"]}")
    service.before = lambda _: Sent(raw=packed, headers={"Content-Encoding": "gzip"})
    with pytest.raises(SourceBroken, match="a page with more than 1048576 bytes"):
        read(connect())


@pytest.mark.parametrize("page", [1, 2, 4])
def test_a_connection_cut_in_any_page_leaves_nothing_half_read(
    service: RestService, connect: Connect, page: int
) -> None:
    service.paging = "next"
    service.before = lambda _: Sent({"data": service.records}, cut=True) if len(service.asked) == page else None
    found: list[Batch] = []
    with pytest.raises(SourceUnavailable, match="can't be reached"):
        found.extend(connect().read(PARTITION, None))
    assert not found


def test_a_reading_of_a_silent_service_can_be_interrupted(service: RestService, connect: Connect) -> None:
    arrived, release = threading.Event(), threading.Event()

    def before(_: Asked) -> None:
        arrived.set()
        release.wait(20)

    service.before = before
    connector = connect(timeout_seconds=60)
    errors: list[BaseException] = []

    def reading() -> None:
        try:
            read(connector)
        except SourceError as error:
            errors.append(error)

    thread = threading.Thread(target=reading)
    thread.start()
    assert arrived.wait(10)
    started = time.monotonic()
    connector.interrupt()
    thread.join(10)
    took = time.monotonic() - started
    release.set()
    assert not thread.is_alive()
    assert took < 2
    assert isinstance(errors[0], SourceUnavailable)


def test_the_cursor_and_the_sentences_hold_no_secret(service: RestService, connect: Connect) -> None:
    service.validates = True
    service.paging = "next"
    connector = connect(
        params={"apikey": "s3cret-param"},
        headers={"X-Tenant": "s3cret-header"},
        auth={"type": "header", "name": "X-Key", "value": "s3cret-value"},
    )
    texts = [json.dumps(dict(read(connector)[-1].cursor))]
    asked = service.asked[-1]
    assert (asked.params["apikey"], asked.headers["x-tenant"], asked.headers["x-key"]) == (
        "s3cret-param", "s3cret-header", "s3cret-value",
    )  # fmt: skip
    for status in (400, 403, 500):
        service.before = lambda _, status=status: Sent({}, status=status)  # type: ignore[misc]
        texts += [step.sentence for step in connector.verify()]
    assert not [text for text in texts if "s3cret" in text]
    assert "http" in texts[0]
    assert len(json.loads(texts[0])["request"]) == 4, "16 bits confirm no guess"


def test_verify_names_the_fields_of_the_first_page(service: RestService, connect: Connect) -> None:
    steps = list(connect().verify())
    assert [step.outcome for step in steps] == ["passed", "passed"]
    assert steps[-1].sentence == "The first page has 10 records: id, mass."


@pytest.mark.parametrize(
    ("sent", "error", "words"),
    [
        (Sent(raw=b'"text"'), SourceBroken, "neither an object nor an array"),
        (Sent(raw=b'{"items": []}'), SourceBroken, "has no member 'data'"),
        (Sent(raw=b'{"data": {"id": 1}}'), SourceBroken, "no array of records"),
        (Sent(raw=b'{"data": [{"id": 1}'), SourceBroken, "ends in the middle"),
        (Sent({"data": [{"id": 1}], "next": "eyJhIjox"}), SourceBroken, r"set page: \{type: cursor, path: next"),
        (
            Sent({"data": [{"id": 1}], "next": "http://127.0.0.2:9/parts"}),
            SourceBroken,
            r"refers to http://127\.0\.0\.2:9, which is not http://127\.0\.0\.1",
        ),
        (Sent(status=302, headers={"Location": "http://127.0.0.2:9/parts"}), SourceBroken, "Nothing was sent there"),
        (
            Sent(raw=b"<!doctype html>", headers={"Content-Type": "text/html"}),
            SourceUnavailable,
            "probably a login page",
        ),
        (
            Sent(raw=gzip.compress(bytes(1000))[:-10], headers={"Content-Encoding": "gzip"}),
            SourceUnavailable,
            r"ends early|can.t be unpacked",
        ),
        (
            Sent(
                raw=gzip.compress(b'{"data": [{"id": 1}]}') + gzip.compress(b"[]"),
                headers={"Content-Encoding": "gzip"},
            ),
            SourceBroken,
            "continues after its end",
        ),
        (
            Sent({"data": [{"id": 1}], "next_cursor": "b2Zm"}),
            SourceBroken,
            r"set page: \{type: cursor, path: next_cursor",
        ),
        (Sent({"data": [{"id": 1}], "meta": {"has_more": True}}), SourceBroken, r"meta\.has_more .* more records"),
    ],
)
def test_a_response_that_is_not_as_configured_is_named(
    service: RestService, connect: Connect, sent: Sent, error: type[SourceError], words: str
) -> None:
    service.before = lambda _: sent
    with pytest.raises(error, match=words):
        read(connect(deletes="remove", auth={"type": "bearer", "token": "s3cret-token"}))
    assert len(service.asked) == 1


@pytest.mark.parametrize("end", [{"has_more": False}, {"next_cursor": None}, {"next_cursor": ""}, {"next": []}])
def test_a_member_that_says_that_there_is_no_next_page_ends_the_reading(
    service: RestService, connect: Connect, end: dict[str, object]
) -> None:
    service.before = lambda _: Sent({"data": [{"id": 1}], **end})
    (batch,) = read(connect())
    assert batch.records.height == 1
    if "has_more" not in end:
        (name,) = end
        read(connect(page={"type": "cursor", "path": name, "param": "at"}))
    assert len(service.asked) <= 2


@pytest.mark.parametrize("kind", ["next", "cursor"])
def test_a_next_page_that_is_no_text_does_not_look_like_the_last_page(
    service: RestService, connect: Connect, kind: str
) -> None:
    service.before = lambda _: Sent({"data": [{"id": 1}], "after": {"id": 1}})
    page = {"type": kind, "path": "after"} | ({"param": "at"} if kind == "cursor" else {})
    with pytest.raises(SourceBroken, match="member after that is no text"):
        read(connect(page=page))


def test_redirects_without_an_end_are_named(service: RestService, connect: Connect) -> None:
    service.before = lambda _: Sent(status=302, headers={"Location": "/parts"})
    with pytest.raises(SourceBroken, match=r"redirects \(status 302\) more than 5 times"):
        read(connect())


@pytest.mark.parametrize("expires", [{}, {"expires_in": "3600"}, {"expires_in": None}, {"expires_in": 3600}])
def test_the_client_of_a_token_is_encoded_as_a_form_and_any_expiry_is_accepted(
    service: RestService, connect: Connect, expires: dict[str, Any]
) -> None:
    sent: list[str] = []

    def before(asked: Asked) -> Sent | None:
        if asked.path != "/token":
            return None
        sent.append(base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode())
        return Sent({"access_token": "t", **expires})

    service.before = before
    auth = {
        "type": "oauth2-client", "token_url": f"{service.url}/token", "client_id": "bench:1", "client_secret": "a+b %é",
    }  # fmt: skip
    (batch,) = read(connect(auth=auth))
    assert batch.records.height == 10
    assert sent == ["bench%3A1:a%2Bb+%25%C3%A9"], "RFC 6749, section 2.3.1"


def test_a_byte_order_mark_before_a_page_is_ignored(service: RestService, connect: Connect) -> None:
    body = b'\xef\xbb\xbf{"data": [{"id": 1, "mass": 2}]}'
    service.before = lambda _: Sent(raw=body)
    (batch,) = read(connect())
    assert batch.records.rows() == [("1", "2")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTP_PROXY", "http://127.0.0.1:1"), ("ALL_PROXY", "socks5://127.0.0.1:1"), ("NO_PROXY", "[::1],fe80::/10")],
    ids=["a proxy", "a proxy that is not supported", "networks of IPv6"],
)
def test_the_variables_for_proxies_have_no_effect(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for one in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(one, raising=False)
        monkeypatch.delenv(one.lower(), raising=False)
    monkeypatch.setenv(name, value)
    (batch,) = read(connect())
    assert batch.records.height == 10


def test_a_full_temporary_folder_is_named_and_the_reading_is_repeated(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = connect()
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **_: FULL.open("w+b", buffering=0))
        with pytest.raises(SourceUnavailable, match=r"temporary folder \(TMPDIR\): No space left on device"):
            read(connector)
        assert [step.outcome for step in connector.verify()][-1] == "failed"
    (batch,) = read(connector)
    assert batch.records.height == 10
