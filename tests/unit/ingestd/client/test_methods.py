"""Signatures and help texts of the methods of both clients."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import Any, assert_type

import httpx
import pytest
from msgspec import UNSET

from ingestd.client import AsyncClient, Client
from ingestd.client.methods import Method
from ingestd.client.operations import ServiceMethods
from ingestd.client.records import Sink, SinkInfo
from ingestd.client.request import Request

METHODS: dict[str, Method[..., Any]] = {
    name: member for name, member in vars(ServiceMethods).items() if isinstance(member, Method)
}


async def the_types_are_known(blocking: Client, asynchronous: AsyncClient) -> None:
    """Never called: mypy checks it with the other tests."""
    assert_type(blocking.get_sink("w", "s", if_none_match="e"), Sink)
    assert_type(await asynchronous.get_sink("w", "s"), Sink)
    assert_type(blocking.list_sinks("w", take=3), tuple[SinkInfo, ...])
    assert_type(await asynchronous.list_sinks("w"), tuple[SinkInfo, ...])
    blocking.get_sink("w")  # type: ignore[call-arg]  # the sink is missing
    blocking.update_sink("w", "s", label=3)  # type: ignore[arg-type]  # a label is a text


@pytest.mark.parametrize("name", sorted(METHODS))
def test_help_describes_arguments_result_and_effect_of_a_method(name: str) -> None:
    function = METHODS[name].function
    anonymous = httpx.MockTransport(lambda _: httpx.Response(404))
    for client in (Client("http://s", transport=anonymous), AsyncClient("http://s", transport=anonymous)):
        method = getattr(client, name)
        declared = inspect.signature(function)
        assert method.__doc__ == function.__doc__
        assert method.__name__ == name
        assert inspect.signature(method) == declared.replace(parameters=list(declared.parameters.values())[1:])
        assert inspect.iscoroutinefunction(method) is isinstance(client, AsyncClient)


@pytest.mark.parametrize(
    ("method", "args", "given", "sent"),
    [
        (
            "list_sinks",
            ["w"],
            {"take": 2, "sort_order": "ASC", "sorted_by": None},
            ({"take": "2", "sortOrder": "ASC"}, None),
        ),
        ("delete_block", ["w", "b"], {"force": True}, ({"force": "true"}, None)),
        ("create_block", ["w"], {"part_number": "7", "id": UNSET}, (None, {"partNumber": "7", "workspace": "w"})),
        ("update_sink", ["w", "s"], {"label": None}, (None, {"label": None})),
        ("retry_conversion", ["f"], {}, (None, {})),
        ("rotate_webhook_secret", ["h"], {"grace_period_seconds": UNSET}, (None, None)),
        ("rotate_webhook_secret", ["h"], {"grace_period_seconds": 0}, (None, {"gracePeriodSeconds": 0})),
        ("update_webhook", ["h"], {"headers": ["A: b"]}, (None, {"headers": ["A: b"]})),
        ("delete_webhook", ["h"], {"idempotency_key": None}, (None, None)),
        ("delete_file", ["f"], {"workspace_id": "w"}, ({"workspaceId": "w"}, None)),
        ("replace_metadata", ["f", {}], {}, (None, {})),
        (
            "mass_update_entry",
            ["w", "s"],
            {"key": "k", "value": "1", "observed_at": datetime(2026, 1, 1, tzinfo=UTC)},
            (None, {"key": "k", "value": "1", "observedAt": "2026-01-01T00:00:00Z"}),
        ),
        ("mass_update_partial", ["w", "s", []], {}, ({"partial": "true"}, [])),
        ("list_workspaces", [], {"filters": {"label": "x"}}, ({"filters": '{"label":"x"}'}, None)),
    ],
)
def test_arguments_are_sent_in_the_query_or_the_body(
    method: str, args: list[Any], given: dict[str, Any], sent: tuple[object, object]
) -> None:
    request: Request[Any] = METHODS[method].build(*args, **given)
    assert (request.query, None if request.body is None else json.loads(request.body)) == sent


def test_headers_are_sent_only_if_given() -> None:
    request = METHODS["update_block"].build("w", "b", if_match='"1"', client_id=None)
    assert request.headers == {"If-Match": '"1"', "Prefer": "return=representation"}
    assert request.names == {"workspace": "w", "block": "b"}


def test_an_unknown_or_missing_argument_is_a_type_error() -> None:
    client = Client("http://s", transport=httpx.MockTransport(lambda _: httpx.Response(404)))
    with pytest.raises(TypeError, match="'takes'"):
        client.list_sinks("w", takes=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'workspace'"):
        client.list_sinks()  # type: ignore[call-arg]
