from __future__ import annotations

import asyncio

import pytest

from ingestd.process.notify import Notifier
from tests.support.daemon_process import Manager


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_applies_only_if_the_manager_names_this_process(
    variables: dict[str, str], expected: float | None
) -> None:
    assert Notifier.from_environment(variables, pid=7).watchdog_seconds == expected


def test_without_a_listener_nothing_is_sent() -> None:
    notifier = Notifier.from_environment({})
    notifier.ready("up")
    notifier.status("up")
    notifier.alive()
    notifier.stopping("down")
    assert notifier.address == ""


async def test_messages_to_a_full_socket_are_sent_later_in_order_and_the_newest_of_each_kind() -> None:
    failures: list[str] = []
    with Manager() as manager:
        manager.fill()
        notifier = Notifier(manager.address, on_failure=failures.append)
        notifier.status("first")
        notifier.reloading("reading")
        notifier.ready("read")
        notifier.status("second")
        assert len(failures) == 1
        assert manager.address in failures[0]
        manager.drain()
        assert all("FILLS" in message for message in manager.messages)
        filled = len(manager.messages)
        await asyncio.to_thread(manager.wait_for, "STATUS", "second")
        assert [next(iter(message)) for message in manager.messages[filled:]] == ["RELOADING", "READY", "STATUS"]
