"""How a conversion goes from state to state (contract, C6, C7). Pure.

::

    not_required ──retry──▶ pending ──claim──▶ in_progress ──▶ succeeded ──retry──▶ pending
                               ▲                   │  └──────▶ failed ─────retry──▶ pending
                               └── lease runs out, internal or timeout: again, later ┘

An attempt is one time that it is begun, or is about to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ErrorClass: TypeAlias = Literal["user", "unsupported", "internal", "timeout"]

AGAIN: Final = frozenset({"internal", "timeout"})
"""The classes that another attempt may help; the others wait for somebody who changes something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPace:
    """How conversions are carried out. ``retry_seconds`` has the pause before each further attempt."""

    retry_seconds: tuple[float, ...] = (10, 60, 300)
    lease_seconds: float = 300.0
    heartbeat_seconds: float = 60.0
    sweep_seconds: float = 30.0
    at_once: int = 2
    seconds: float = 240.0
    cpu_seconds: int = 120
    memory_bytes: int = 2_147_483_648
    output_bytes: int = 1_073_741_824

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ConversionPace:
        """The defaults, each replaced where ``WORKSPACED_CONVERSION_<NAME>`` says otherwise.

        ``WORKSPACED_CONVERSION_LEASE_SECONDS`` draws the heartbeat with it: a fifth of the lease.

        Raises:
            ValueError: a value is no number of the right size; the sentence names the variable.
        """
        given: dict[str, float] = {}
        for name, lowest in (
            ("lease_seconds", 1),
            ("at_once", 1),
            ("seconds", 1),
            ("cpu_seconds", 1),
            ("memory_bytes", 268_435_456),
            ("output_bytes", 1_048_576),
        ):
            variable = f"WORKSPACED_CONVERSION_{name.upper()}"
            text = environment.get(variable, "")
            if text and not (text.isascii() and text.isdigit() and int(text) >= lowest):
                raise ValueError(f"{variable} is '{text}', but must be a whole number of at least {lowest}.")
            if text:
                given[name] = int(text)
        lease = given.get("lease_seconds", cls().lease_seconds)
        return cls(**given, heartbeat_seconds=lease / 5)  # type: ignore[arg-type]  # whole numbers, all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What becomes of a conversion that failed: ``due_at`` None: it has failed for good."""

    due_at: int | None
    failures: int


def after_failure(pace: ConversionPace, error_class: ErrorClass, *, failures: int, now: int) -> Next:
    """``failures``: so many there were before, since somebody asked for it. Instants are milliseconds since 1970."""
    if error_class not in AGAIN or failures >= len(pace.retry_seconds):
        return Next(due_at=None, failures=failures + 1)
    return Next(due_at=now + int(pace.retry_seconds[failures] * 1_000), failures=failures + 1)


def after_lost_lease(pace: ConversionPace, *, failures: int, now: int) -> Next:
    """Whoever held it is gone: again at once, but not for ever, since the file may be what killed him."""
    return Next(due_at=None if failures >= len(pace.retry_seconds) else now, failures=failures + 1)
