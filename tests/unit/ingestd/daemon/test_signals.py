"""Signals of the daemon: a reload that is requested while it starts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import click
import pytest

from ingestd.cli.app import DaemonVerbs
from ingestd.daemon.signals import reload_signal


@pytest.fixture(autouse=True)
def _unchanged_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


async def reloads(*, before: int, during: int) -> int:
    """Return the number of reloads after SIGHUPs before and after the daemon can handle them."""
    verbs = DaemonVerbs("ingestd")
    assert verbs.get_command(click.Context(verbs), "run") is not None
    for _ in range(before):
        os.kill(os.getpid(), signal.SIGHUP)
    count = 0

    def reload() -> None:
        nonlocal count
        count += 1

    with reload_signal(reload):
        for _ in range(during):
            os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
    return count


async def test_a_hangup_while_the_daemon_starts_ends_nothing_and_is_a_reload() -> None:
    assert await reloads(before=3, during=0) == 1


async def test_without_an_early_hangup_nothing_is_reloaded_before_the_next_one() -> None:
    assert await reloads(before=0, during=0) == 0
    assert await reloads(before=0, during=2) == 2
