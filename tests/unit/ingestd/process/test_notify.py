from __future__ import annotations

import pytest

from ingestd.process.notify import Notifier


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
