"""What an operator should know about a source while the daemon runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorNotice:
    """A sentence on a pipeline's source; ``since``: when it became true, in seconds since the epoch, None if not known."""

    pipeline: str
    sentence: str
    since: float | None = None


class Failures:
    """The partitions at which something fails again and again, with the reason and since when. May be read from any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: dict[str, tuple[str, float]] = {}

    def record(self, name: str, sentence: str) -> bool:
        """Take note of a failure; return False if it is the one that is known already."""
        known = self._known.get(name)
        self._known[name] = (sentence, known[1] if known is not None else self._now())
        return known is None or known[0] != sentence

    def clear(self, name: str) -> None:
        """It has succeeded."""
        self._known.pop(name, None)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the partitions that are not tried any more."""
        for gone in [name for name in self._known if name not in names]:
            del self._known[gone]

    def of(self, name: str) -> tuple[str, float] | None:
        """The reason and since when; None: nothing fails."""
        return self._known.get(name)

    def by_sentence(self) -> dict[str, float]:
        """The reasons, each with the time since which it has been one."""
        found: dict[str, float] = {}
        for sentence, since in list(self._known.values()):
            found[sentence] = min(since, found.get(sentence, since))
        return found
