"""How much of the history of entries is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.settings.workers import whole_numbers

MOST_CHANGES: Final = 1_000
MOST_DAYS: Final = 3_650


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """The history of sinks without settings of their own: up to ``changes`` of each entry, 0: none, for ``days``."""

    changes: int = 0
    days: int = 90

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> HistorySettings:
        """Return the defaults, replaced by ``WORKSPACED_HISTORY_CHANGES`` and ``WORKSPACED_HISTORY_DAYS``.

        Raises:
            ValueError: a value is not a whole number, or is out of range; the sentence names the variable.
        """
        given = whole_numbers(environment, "WORKSPACED_HISTORY_", {"changes": 0, "days": 1})
        for name, most in (("changes", MOST_CHANGES), ("days", MOST_DAYS)):
            if given.get(name, 0) > most:
                raise ValueError(
                    f"WORKSPACED_HISTORY_{name.upper()} is '{given[name]}', but may be {most} at the most."
                )
        return cls(**given)
