"""Notices about sources for the operator, and the repeated failures that cause them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, TypeAlias

import msgspec

NoticeState: TypeAlias = Literal["", "attention", "unavailable", "failed"]
"""The state of the pipeline that a notice causes; empty: no state, because the notice is only information."""


class OperatorNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence about the source of a pipeline; about the daemon itself if ``pipeline`` is empty.

    ``since``: when the sentence became true, in seconds since the epoch; None if this is unknown.
    """

    pipeline: str
    sentence: str
    since: float | None = None
    state: NoticeState = ""


class SourceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the connection of a pipeline's source; see `ingestd.sdk.ConnectionHealth`."""

    pipeline: str
    sentence: str
    connected_since: float | None = None
    lag_seconds: float | None = None
    dropped: int = 0
    stays_connected: bool = True


class Failures:
    """The repeated failures of partitions: the reason and the first time of each. Thread-safe for readers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: dict[str, tuple[str, float]] = {}

    def record(self, name: str, sentence: str) -> bool:
        """Record a failure; return False if the partition already has this sentence."""
        known = self._known.get(name)
        self._known[name] = (sentence, known[1] if known is not None else self._now())
        return known is None or known[0] != sentence

    def clear(self, name: str) -> None:
        """Delete the failure of a partition, because it has succeeded."""
        self._known.pop(name, None)

    def keep_only(self, names: Collection[str]) -> None:
        """Delete the failures of all other partitions, which are no longer tried."""
        for name in [name for name in self._known if name not in names]:
            del self._known[name]

    def get(self, name: str) -> tuple[str, float] | None:
        """Return the reason of a partition's failure and its first time in seconds since the epoch; None: no failure."""
        return self._known.get(name)

    def by_sentence(self) -> dict[str, float]:
        """Return each reason with its first time, in seconds since the epoch."""
        found: dict[str, float] = {}
        for sentence, since in list(self._known.values()):
            found[sentence] = min(since, found.get(sentence, since))
        return found
