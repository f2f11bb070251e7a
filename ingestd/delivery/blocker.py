"""The reason why a lane cannot deliver now."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ingestd.core.outcome import Denied, Outcome, Remedy

Reaction: TypeAlias = Literal["retry", "pause", "reopen"]
"""retry: back off and send again · pause: a person must act; retry periodically · reopen: resolve the sink again."""

_REACTIONS: dict[Remedy, Reaction] = {"pause": "pause", "missing": "reopen"}


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """Why a lane cannot deliver now, as a sentence, and what the lane does. Its claimed entries stay pending.

    ``denied``: the API key lacks a right; this blocks other lanes too.
    """

    reaction: Reaction
    sentence: str
    retry_after_seconds: float | None = None
    denied: Denied = ""


def blocker_of(outcome: Outcome, *, reaction: Reaction | None = None) -> Blocker:
    """Return the blocker that an outcome causes; ``reaction`` replaces the reaction to the outcome's remedy."""
    return Blocker(
        reaction=reaction or _REACTIONS.get(outcome.remedy, "retry"),
        sentence=outcome.sentence,
        retry_after_seconds=outcome.retry_after_seconds,
        denied=outcome.denied,
    )
