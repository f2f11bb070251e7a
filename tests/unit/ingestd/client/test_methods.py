"""What editors, mypy and help() know of the methods of both clients."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Generator
from typing import assert_type

import httpx
import pytest

from ingestd.client import AsyncClient, Client
from ingestd.client.methods import Iteration, Method
from ingestd.client.records import Sink, SinkInfo
from ingestd.client.surface import Surface

METHODS = {name: member for name, member in vars(Surface).items() if isinstance(member, Method | Iteration)}


async def the_types_are_known(blocking: Client, asynchronous: AsyncClient) -> None:
    """Never called: mypy judges it with the other tests."""
    assert_type(blocking.get_sink("w", "s", if_none_match="e"), Sink)
    assert_type(await asynchronous.get_sink("w", "s"), Sink)
    assert_type(blocking.iter_sinks("w"), Generator[SinkInfo, None, None])
    assert_type(asynchronous.iter_sinks("w"), AsyncGenerator[SinkInfo, None])
    blocking.get_sink("w")  # type: ignore[call-arg]  # the sink is missing
    blocking.update_sink("w", "s", label=3)  # type: ignore[arg-type]  # a label is a text


@pytest.mark.parametrize("name", sorted(METHODS))
def test_help_shows_what_a_method_takes_gives_and_does(name: str) -> None:
    build = METHODS[name].build
    nobody = httpx.MockTransport(lambda _: httpx.Response(404))
    for client in (Client("http://s", transport=nobody), AsyncClient("http://s", transport=nobody)):
        method = getattr(client, name)
        assert method.__doc__ == build.__doc__
        assert method.__name__ == name
        assert inspect.signature(method).parameters == inspect.signature(build).parameters
        assert "Request" not in str(inspect.signature(method).return_annotation)
        waits = isinstance(client, AsyncClient) and isinstance(METHODS[name], Method)
        assert inspect.iscoroutinefunction(method) is waits
