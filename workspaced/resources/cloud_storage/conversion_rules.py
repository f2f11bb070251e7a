"""How a conversion goes from state to state (contract C6, C7). Pure.

::

    not_required ──retry──▶ pending ──claim──▶ in_progress ──▶ succeeded ──retry──▶ pending
                               ▲                   │  └──────▶ failed ─────retry──▶ pending
                               └── lease runs out, internal or timeout: again, later ┘

An attempt is one time that it is begun, or is about to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from workspaced.settings.workers import ConversionSettings

ErrorClass: TypeAlias = Literal["user", "unsupported", "internal", "timeout"]

AGAIN: Final = frozenset({"internal", "timeout"})
"""The classes that another attempt may help; the others wait for somebody who changes something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What becomes of a conversion that failed: ``due_at`` None: it has failed for good."""

    due_at: int | None
    failures: int


def after_failure(pace: ConversionSettings, error_class: ErrorClass, *, failures: int, now: int) -> Next:
    """``failures``: so many there were before, since somebody asked for it. Instants are milliseconds since 1970."""
    if error_class not in AGAIN or failures >= len(pace.retry_seconds):
        return Next(due_at=None, failures=failures + 1)
    return Next(due_at=now + int(pace.retry_seconds[failures] * 1_000), failures=failures + 1)


def after_lost_lease(pace: ConversionSettings, *, failures: int, now: int) -> Next:
    """Whoever held it is gone: again at once, but not for ever, since the file may be what killed him."""
    return Next(due_at=None if failures >= len(pace.retry_seconds) else now, failures=failures + 1)
