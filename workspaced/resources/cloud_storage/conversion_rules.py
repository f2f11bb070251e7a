"""The states of a conversion, and its retries (contract C6, C7). Pure.

::

    not_required ──retry──▶ pending ──claim──▶ in_progress ──▶ succeeded ──retry──▶ pending
                               ▲                   │  └──────▶ failed ─────retry──▶ pending
                               └── lease runs out, internal or timeout: again, later ┘

`attempt` counts how often it was queued.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from workspaced.settings.workers import ConversionSettings

ErrorClass: TypeAlias = Literal["user", "unsupported", "internal", "timeout"]

AGAIN: Final = frozenset({"internal", "timeout"})
"""The classes of failures after which another attempt can succeed without a change of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureStep:
    """The consequence of a failed attempt. ``due_at``: when to try again; None: never."""

    due_at: int | None
    failures: int


def after_failure(settings: ConversionSettings, error_class: ErrorClass, *, failures: int, now: int) -> FailureStep:
    """Return what follows a failed attempt, after ``failures`` earlier ones."""
    if error_class not in AGAIN or failures >= len(settings.retry_seconds):
        return FailureStep(due_at=None, failures=failures + 1)
    return FailureStep(due_at=now + int(settings.retry_seconds[failures] * 1_000), failures=failures + 1)


def after_lost_lease(settings: ConversionSettings, *, failures: int, now: int) -> FailureStep:
    """Return what follows an expired lease: a limited number of attempts, as the file may kill them."""
    return FailureStep(due_at=None if failures >= len(settings.retry_seconds) else now, failures=failures + 1)
