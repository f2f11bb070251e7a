"""The steps that the page of a file shows."""

from __future__ import annotations

from typing import Any

from ingestd.commands.why import PartitionExplanation
from ingestd.mirror.port import RunSummary
from ingestd.mirror.reports import History
from ingestd.web.file_life import life_of

READING = RunSummary(
    id=2, records=3, created=2, updated=0, unchanged=0, removed=0, rejected=1, valueless=0, collided=False
)


def history(**changes: Any) -> History:
    known: dict[str, Any] = {
        "pipeline": "masses", "name": "a.csv", "seen_at": 10.0, "cursor": {}, "reading": READING, "read_at": 11.0,
        "ended_at": 12.0, "acknowledged_at": 13.0, "facts": {"file.mtime": "1971-01-02T00:00:00+00:00"}, "same_as": "",
        "again_at": 0.0, "failure": "", "failed_at": 0.0, "pending": 0, "rejected": 1,
    }  # fmt: skip
    return History(**known | changes)


def steps(found: History | None, *, waiting: str = "", location: str = "", held: bool = False) -> list[tuple[str, Any]]:
    explanation = PartitionExplanation(
        pipeline="masses", partition="a.csv", sentence="x", waiting=waiting, location=location
    )
    return [(step.name, step.at) for step in life_of(explanation, found, is_held=held)]


def test_a_file_lives_from_seen_to_archived() -> None:
    lived = steps(history(facts={}), location="it was archived as done/a.csv")
    assert lived == [("Seen", 10.0), ("Read", 11.0), ("Mapped", 12.0), ("Delivered", 13.0), ("Archived", 13.0)]
    assert steps(history(facts={}), location="it stays in drop")[-1] == ("Now", None)


def test_a_file_that_changed_after_it_was_seen_has_the_change_after_it() -> None:
    assert [name for name, _ in steps(history())][:2] == ["Seen", "Changed"]
    assert [name for name, _ in steps(history(seen_at=9e9))][:2] == ["Changed", "Seen"]


def test_the_last_step_is_the_present_one() -> None:
    assert steps(None, waiting="a.csv is empty.") == [("Waits", None)]
    assert steps(history(pending=2, acknowledged_at=None))[-1] == ("Delivery", None)
    assert steps(history(), waiting="It changes all.", held=True)[-1] == ("Held", None)
    assert steps(history(failure="It is damaged.", failed_at=20.0))[-1] == ("Not read", 20.0)
    assert steps(history(again_at=21.0))[-2:] == [("Read again", 21.0), ("Delivered", 13.0)]


def test_the_delivery_of_an_earlier_content_is_not_that_of_this_one() -> None:
    assert steps(history(acknowledged_at=5.0))[-1] == ("Delivered", None)
