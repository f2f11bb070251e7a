"""What a reload says about sources that could not be read."""

from __future__ import annotations

from ingestd.daemon.control.requests import Reloaded
from ingestd.daemon.reporting import describe_retries


def test_sources_that_are_tried_now_and_later_are_named_with_the_time() -> None:
    reloaded = Reloaded(retried=("parts", "masses"), waiting={"plm": 0.0})
    assert list(describe_retries(reloaded)) == [
        "Sources that could not be read are tried again now: parts, masses.",
        "The source of plm asked for a wait, so it is not tried again before 1970-01-01 00:00:00 UTC.",
    ]
    assert list(describe_retries(Reloaded())) == []
