"""What needs a person: which conditions, in which order, and with which command and action."""

from __future__ import annotations

from typing import Any

from ingestd.core.pipeline_state import PipelineFacts, derive_state
from ingestd.mirror.port import HeldRun
from ingestd.web.attention import Attention, count_states, find_attention

RUN = HeldRun(
    run=7, pipeline="a", partition="a.csv", since=0.0, reasons=("It changes all.",), state="held", records=1, created=0,
    updated=1, removed=0,
)  # fmt: skip


def found(held: tuple[HeldRun, ...] = (), **pipelines: dict[str, Any]) -> list[Attention]:
    states = [derive_state(name, PipelineFacts(**facts)) for name, facts in pipelines.items()]
    return find_attention(states, held)


def test_a_pipeline_that_works_or_waits_needs_no_person() -> None:
    assert found(a={}, b={"pending": 3, "waiting_files": 1}, c={"has_run": False}) == []


def test_each_condition_has_its_command_and_its_action() -> None:
    conditions: dict[str, Any] = {
        "rejected": 2, "drift": 1, "unreadable_files": 3, "held": 1, "notices": ("It can't be moved.",),
        "outages": ("It does not respond.",), "failures": ("The key has changed.",), "pause": "It is paused.",
    }  # fmt: skip
    shown = {one.sentence: (one.command, one.verb or one.link) for one in found((RUN,), a=conditions)}
    assert shown == {
        "It is paused.": ("ingestd resume a", "resume"),
        "The key has changed.": ("ingestd run a", "run"),
        "It does not respond.": ("ingestd run a", "run"),
        "It can't be moved.": ("ingestd run a", "run"),
        "2 rejections": ("ingestd rejected list --pipeline a", "/rejected?pipeline=a"),
        "1 key changed by others": ("ingestd drift a", "/drift?pipeline=a"),
        "3 unreadable files": ("ingestd why FILE", "/pipelines/a#waiting"),
        "Run 7 of a.csv: It changes all.": ("ingestd approve 7", "/held/7"),
    }
    assert next(iter(shown)) == "It is paused.", "the most severe state is the first"
    assert len({one.id for one in found((RUN,), a=conditions)}) == len(shown)


def test_an_outage_of_several_pipelines_is_one_condition() -> None:
    outage = {"outages": ("The service does not respond.",)}
    (one,) = found(a=outage, b=outage, c=outage)
    assert (one.pipelines, one.verb, one.link) == (("a", "b", "c"), "", "/?state=unavailable")
    paused = {**outage, "pause": "It is paused."}
    (one,) = (one for one in found(a=paused, b=outage) if one.state == "unavailable")
    assert (one.label, one.link) == ("Show unavailable", "/?state=unavailable"), "the first one has a worse state"
    (one,) = (one for one in found(a=paused, b=paused) if one.state == "unavailable")
    assert (one.label, one.link) == ("Show disabled", "/?state=disabled")


def test_states_are_counted_the_most_severe_first() -> None:
    states = [
        derive_state("a", PipelineFacts()),
        derive_state("b", PipelineFacts(rejected=1)),
        derive_state("c", PipelineFacts()),
    ]
    assert list(count_states(states)) == [("attention", 1), ("ok", 2)]
