"""Pipeline conditions that a person must handle, each with the command and the page action that handle it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from ingestd.core.pipeline_state import SEVERITY, Cause, PipelineState, State, StateReason
from ingestd.mirror.port import HeldRun

NEEDS_A_PERSON: Final = SEVERITY["held"]
"""The lowest severity of a state that a person must handle."""
MOST: Final = 12
"""The maximum number of conditions that the overview lists."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of one pipeline, or of several pipelines with the same reason.

    ``id``: the id of the HTML element. ``command`` handles the condition or shows more. ``verb``: the action of the pipeline's
    page with the same effect, or empty. ``link``: a page about the condition, or empty. ``label``: the button's or link's text.
    """

    id: str
    state: State
    pipelines: tuple[str, ...]
    sentence: str
    command: str
    label: str
    verb: str = ""
    link: str = ""


def find_attention(states: Sequence[PipelineState], held: Sequence[HeldRun]) -> list[Attention]:
    """Return the conditions that a person must handle, the most severe first.

    ``held``: the held runs; each is one condition. An outage of several pipelines with the same reason is one condition.
    """
    together: dict[StateReason, list[PipelineState]] = {}
    found: list[Attention] = []
    for state in states:
        for reason in state.reasons:
            if SEVERITY[reason.state] < NEEDS_A_PERSON:
                continue
            if reason.cause in {"failure", "outage"}:
                together.setdefault(reason, []).append(state)
            elif reason.cause == "held":
                found += map(_of_held_run, (one for one in held if one.pipeline == state.name))
            else:
                found.append(_of_pipeline(state.name, reason))
    found += (_of_outage(reason, pipelines) for reason, pipelines in together.items())
    return sorted(found, key=lambda one: -SEVERITY[one.state])


def _of_held_run(run: HeldRun) -> Attention:
    return Attention(
        id=f"attention-run-{run.run}",
        state="held",
        pipelines=(run.pipeline,),
        sentence=f"Run {run.run} of {run.partition}: {' '.join(run.reasons)}",
        command=f"ingestd approve {run.run}",
        label=f"Compare run {run.run}",
        link=f"/held/{run.run}",
    )


def _of_outage(reason: StateReason, pipelines: Sequence[PipelineState]) -> Attention:
    names = tuple(one.name for one in pipelines)
    first = names[0]
    is_one = len(names) == 1
    # A filter shows pipelines by their most severe reason, which may differ from this reason.
    shown = reason.state if any(one.state == reason.state for one in pipelines) else pipelines[0].state
    return Attention(
        id=f"attention-{reason.cause}-{first}",
        state=reason.state,
        pipelines=names,
        sentence=reason.sentence,
        command=f"ingestd run {first}" if is_one else "ingestd doctor",
        label="Run now" if is_one else f"Show {shown}",
        verb="run" if is_one else "",
        link="" if is_one else f"/?state={shown}",
    )


_COMMANDS: Final[Mapping[Cause, tuple[str, str, str, str]]] = {
    "notice": ("ingestd run {}", "Run now", "run", ""),
    "pause": ("ingestd resume {}", "Resume", "resume", ""),
    "rejected": ("ingestd rejected list --pipeline {}", "Show rejected", "", "/rejected?pipeline={}"),
    "drift": ("ingestd drift {}", "Show drift", "", "/drift?pipeline={}"),
    "unreadable": ("ingestd why FILE", "Show the files", "", "/pipelines/{}#waiting"),
}
"""The command, the label, the action and the page of a cause."""


def _of_pipeline(name: str, reason: StateReason) -> Attention:
    command, label, verb, link = _COMMANDS[reason.cause]
    return Attention(
        id=f"attention-{reason.cause}-{name}",
        state=reason.state,
        pipelines=(name,),
        sentence=reason.sentence,
        command=command.format(name),
        label=label,
        verb=verb,
        link=link.format(quote(name)),
    )


def count_states(states: Sequence[PipelineState]) -> Iterator[tuple[State, int]]:
    """Yield the states that pipelines have, most severe first, with the number of pipelines in each state."""
    for state in sorted(SEVERITY, key=lambda one: -SEVERITY[one]):
        if count := sum(one.state == state for one in states):
            yield state, count
