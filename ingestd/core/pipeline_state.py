"""The state of a pipeline. Only this module derives it, for `ingestd status`, the pages, the metrics and the health check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.phrases import counted

State: TypeAlias = Literal["ok", "waiting", "held", "attention", "unavailable", "failed", "disabled"]

DEFINITIONS: Mapping[State, str] = {
    "ok": "Everything in the source is delivered.",
    "waiting": "It was not read yet, entries wait for delivery, or files are not ready.",
    "held": "A run waits until a person approves or discards it.",
    "attention": "It works, but something is rejected, differs in the service, or can't be completed without a person.",
    "unavailable": "The source or the service can't be used now; ingestd tries again without a person.",
    "failed": "The source or the delivery stopped, and a person must change something.",
    "disabled": "A person paused it.",
}
"""The meaning of each state, the least severe first. If several conditions are true, the most severe state counts."""

SEVERITY: Mapping[State, int] = {state: rank for rank, state in enumerate(DEFINITIONS)}
"""The rank of a state; 0: no action is needed."""


Cause: TypeAlias = Literal[
    "failure", "outage", "notice", "pause", "rejected", "drift", "unreadable", "held", "files", "pending", "new"
]
"""The kind of a condition; it determines what a person can do. ``files``: files are not ready. ``new``: the pipeline never
ran."""


class PipelineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The present facts about a pipeline. The defaults are the facts of a pipeline that works."""

    pause: str = ""
    """A sentence on the effect of the pause; empty if the pipeline is not paused."""
    failures: tuple[str, ...] = ()
    """Why the pipeline is stopped until a person changes something."""
    outages: tuple[str, ...] = ()
    """Why the source or the service can't be used now."""
    rejected: int = 0
    """The number of rejections that no person and no later reading has handled."""
    drift: int = 0
    """The number of keys of the pipeline's sink that other programs or people changed, and that were not handled yet."""
    notices: tuple[str, ...] = ()
    """Work that can't be completed without a person, such as a file that can't be moved."""
    unreadable_files: int = 0
    held: int = 0
    """The number of runs that wait for an approval."""
    waiting_files: int = 0
    """The number of files that are unstable, not ready or empty."""
    pending: int = 0
    """The number of entries of the pipeline's sink that are not delivered."""
    has_run: bool = True
    """Whether a run has ever ended."""


class StateReason(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that is true, the state that it causes, and its kind.

    The names of the members are part of `ingestd status --json`.
    """

    state: State
    sentence: str
    cause: Cause


class PipelineState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pipeline. ``reasons``: the most severe first; empty if it is ``ok``.

    The names of the members are part of `ingestd status --json`.
    """

    name: str
    state: State
    reasons: tuple[StateReason, ...]


def derive_state(name: str, facts: PipelineFacts) -> PipelineState:
    """Return the most severe state that a fact causes, with all reasons."""
    reasons = sorted(_reasons(facts), key=lambda reason: -SEVERITY[reason.state])
    return PipelineState(name=name, state=reasons[0].state if reasons else "ok", reasons=tuple(reasons))


def _reasons(facts: PipelineFacts) -> Iterator[StateReason]:
    """Yield a reason for each fact that is not the default. Each fact causes one state, whatever the other facts are."""
    sentences: tuple[tuple[State, Cause, tuple[str, ...]], ...] = (
        ("failed", "failure", facts.failures),
        ("unavailable", "outage", facts.outages),
        ("attention", "notice", facts.notices),
        ("disabled", "pause", (facts.pause,) if facts.pause else ()),
    )
    for state, cause, found in sentences:
        yield from (StateReason(state=state, sentence=sentence, cause=cause) for sentence in found)
    phrases: tuple[tuple[State, Cause, int, str, str], ...] = (
        ("attention", "rejected", facts.rejected, "rejection", ""),
        ("attention", "drift", facts.drift, "key", " changed by others"),
        ("attention", "unreadable", facts.unreadable_files, "unreadable file", ""),
        ("held", "held", facts.held, "held run", ""),
        ("waiting", "files", facts.waiting_files, "file", " not ready"),
        ("waiting", "pending", facts.pending, "pending entry", ""),
    )
    for state, cause, count, noun, rest in phrases:
        if count:
            yield StateReason(state=state, sentence=f"{counted(count, noun)}{rest}", cause=cause)
    if not facts.has_run:
        yield StateReason(state="waiting", sentence="never ran", cause="new")
