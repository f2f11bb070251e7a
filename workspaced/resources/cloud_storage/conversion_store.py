"""Conversions in the database, and their states and retries (contract C6, C7).

::

    not_required ──retry──▶ pending ──claim──▶ in_progress ──▶ succeeded ──retry──▶ pending
                               ▲                   │  └──────▶ failed ─────retry──▶ pending
                               └── lease runs out, internal or timeout: again, later ┘

`attempt` counts how often the conversion was queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workspaced.resources.cloud_storage import events, store
from workspaced.resources.cloud_storage.converters.registry import converter_of
from workspaced.resources.cloud_storage.converters.results import ErrorClass
from workspaced.resources.cloud_storage.values import StoredFile, StoredOutput
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "conversions.sql")

CONVERSIONS = "conversions"
"""The channel that a commit notifies when it queues a conversion, or deletes a file that may be in conversion."""

_CLAIMED_AT_ONCE = 16
_AGAIN: Final = frozenset({"internal", "timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionOrigin:
    """The origin of conversion events, which no request causes. ``now`` is milliseconds since 1970."""

    now: int
    actor: str = "system"
    client_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConversionClaim:
    """A conversion under a lease of this process. ``current``: whether the version is the file's current version."""

    number: int
    lease: str
    file_id: str
    file_name: str
    content_type: str
    sha256: str
    size: int
    current: bool


def queue_conversion(tx: Transaction, version: int, *, file_name: str, content_type: str, now: int) -> None:
    """Insert the conversion of the version with this number, and queue it if there is a converter for the file."""
    wanted = converter_of(file_name, content_type) is not None
    values = {"version": version, "state": "pending" if wanted else "not_required", "attempt": int(wanted), "now": now}
    tx.run(_SQL["insert_conversion"], values)
    if wanted:
        tx.notify(CONVERSIONS)


def queue_again(tx: Transaction, conversion: int, *, force: bool, now: int) -> bool:
    """Queue a conversion again. Return False if it is queued already or, without ``force``, in progress (contract C7)."""
    changed = tx.run(_SQL["queue_again"], {"number": conversion, "force": int(force), "now": now})
    if changed:
        tx.run(_SQL["drop_outputs"], {"number": conversion})
        tx.run(_SQL["touch_file"], {"number": conversion})
        tx.notify(CONVERSIONS)
    return bool(changed)


def is_due(reader: ReadTransaction, *, now: int) -> bool:
    """Whether any conversion is due."""
    return reader.one(_SQL["due"], {"now": now, "most": 1}) is not None


def next_due(reader: ReadTransaction, *, now: int) -> int | None:
    """Return the next instant after ``now`` at which a conversion is due."""
    row = reader.one(_SQL["next_due"], {"now": now})
    return None if row is None or row[0] is None else int(row[0])


def limit_waits(tx: Transaction, settings: ConversionSettings, *, now: int) -> None:
    """After the clock was set back, limit the wait of each conversion to the longest pause or lease."""
    latest = now + int(max(*settings.retry_seconds, settings.lease_seconds) * 1_000)
    tx.run(_SQL["limit_wait"], {"latest": latest})


def claim(tx: Transaction, *, lease: str, settings: ConversionSettings, now: int) -> ConversionClaim | None:
    """Claim the conversion that has been due for the longest time; None if no conversion is due.

    A conversion with an expired lease can be claimed again. After too many failures, its state becomes ``failed`` instead.
    """
    for (number,) in tx.all(_SQL["due"], {"now": now, "most": _CLAIMED_AT_ONCE}):
        if not _end_lost_lease(tx, number, settings=settings, now=now):
            continue
        until = now + int(settings.lease_seconds * 1_000)
        if not tx.one(_SQL["claim"], {"number": number, "lease": lease, "until": until, "now": now}):
            continue
        row = tx.existing(_SQL["claimed"], {"number": number})
        current = row[5] == row[6]
        # the current version has the present name and type of the file
        file_name, content_type = (row[7], row[8]) if current else (row[0], row[1])
        claimed = ConversionClaim(number, lease, row[4], file_name, content_type, row[2], row[3], current)
        _emit(tx, claimed, "started", now=now)
        return claimed
    return None


def _end_lost_lease(tx: Transaction, number: int, *, settings: ConversionSettings, now: int) -> bool:
    """End an expired lease, if there is one. Return whether the conversion may be claimed."""
    lost = tx.one(_SQL["lost"], {"number": number, "now": now})
    if lost is None:
        return True
    held = tx.one(_SQL["lease_of"], {"number": number})
    step = after_lost_lease(settings, failures=lost[1], now=now)
    sentence = "The process that converted the file ended before the conversion."
    lease = held[0] if held else None
    _end(tx, number, step, lease=lease, error_class="internal", sentence=sentence, now=now)
    if step.due_at is None:
        row = tx.one(_SQL["claimed"], {"number": number})
        if row is not None and row[5] == row[6]:
            _emit_for_file(tx, row[4], "failed", now=now)
    return step.due_at is not None


def renew_lease(tx: Transaction, claimed: ConversionClaim, *, settings: ConversionSettings, now: int) -> bool:
    """Renew the lease. Return False if the lease was lost, or if the file was deleted."""
    until = now + int(settings.lease_seconds * 1_000)
    renewed = tx.run(_SQL["renew_lease"], {"number": claimed.number, "lease": claimed.lease, "until": until})
    return bool(renewed) and is_held(tx, claimed)


def is_held(reader: ReadTransaction, claimed: ConversionClaim) -> bool:
    """Whether the lease of a conversion is still valid and its file still exists."""
    return reader.one(_SQL["is_held"], {"number": claimed.number, "lease": claimed.lease}) is not None


def succeed(tx: Transaction, claimed: ConversionClaim, outputs: Sequence[StoredOutput], *, now: int) -> bool:
    """Record the outputs of a conversion. If its lease was lost, change nothing and return False."""
    if not tx.run(_SQL["succeed"], {"number": claimed.number, "lease": claimed.lease, "now": now}):
        return False
    tx.run(_SQL["drop_outputs"], {"number": claimed.number})
    for position, output in enumerate(outputs):
        tx.run(_SQL["insert_output"], {"conversion": claimed.number, "position": position, **output._asdict()})
    _emit(tx, claimed, "succeeded", now=now)
    return True


def fail(
    tx: Transaction,
    claimed: ConversionClaim,
    error_class: ErrorClass,
    sentence: str,
    *,
    settings: ConversionSettings,
    now: int,
) -> str | None:
    """Record a failed attempt, and return the new state. If the lease was lost, change nothing and return None."""
    row = tx.one(_SQL["failures_of"], {"number": claimed.number, "lease": claimed.lease})
    if row is None:
        return None
    step = after_failure(settings, error_class, failures=row[0], now=now)
    _end(tx, claimed.number, step, lease=claimed.lease, error_class=error_class, sentence=sentence, now=now)
    if step.due_at is None:
        _emit(tx, claimed, "failed", now=now)
        return "failed"
    tx.run(_SQL["touch_file"], {"number": claimed.number})
    return "pending"


def release(tx: Transaction, claimed: ConversionClaim, *, now: int) -> None:
    """Release a claim without an attempt, because the process stops or the file was deleted."""
    if tx.run(_SQL["release"], {"number": claimed.number, "lease": claimed.lease, "now": now}):
        tx.run(_SQL["touch_file"], {"number": claimed.number})
        tx.notify(CONVERSIONS)


def _end(
    tx: Transaction,
    number: int,
    step: FailureStep,
    *,
    lease: str | None,
    error_class: ErrorClass,
    sentence: str,
    now: int,
) -> None:
    values = {
        "number": number,
        "lease": lease,
        "error_class": error_class,
        "error": sentence,
        "failures": step.failures,
        "now": now,
    }
    if step.due_at is None:
        tx.run(_SQL["fail"], values)
    else:
        tx.run(_SQL["postpone"], {**values, "due_at": step.due_at})


def _emit(tx: Transaction, claimed: ConversionClaim, verb: str, *, now: int) -> None:
    tx.run(_SQL["touch_file"], {"number": claimed.number})
    if claimed.current:  # the record of a file has only the conversion of its current version
        _emit_for_file(tx, claimed.file_id, verb, now=now)


def _emit_for_file(tx: Transaction, file_id: str, verb: str, *, now: int) -> None:
    file: StoredFile | None = store.find_file(tx, file_id)
    if file is not None:
        events.emit_conversion(tx, ConversionOrigin(now=now), verb, file)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureStep:
    """The consequence of a failed attempt. ``due_at``: when to try again; None: never."""

    due_at: int | None
    failures: int


def after_failure(settings: ConversionSettings, error_class: ErrorClass, *, failures: int, now: int) -> FailureStep:
    """Return the consequence of a failed attempt, after ``failures`` earlier failures."""
    if error_class not in _AGAIN or failures >= len(settings.retry_seconds):
        return FailureStep(due_at=None, failures=failures + 1)
    return FailureStep(due_at=now + int(settings.retry_seconds[failures] * 1_000), failures=failures + 1)


def after_lost_lease(settings: ConversionSettings, *, failures: int, now: int) -> FailureStep:
    """Return the consequence of an expired lease.

    The number of attempts is limited, because the file may make the process crash at every attempt.
    """
    return FailureStep(due_at=None if failures >= len(settings.retry_seconds) else now, failures=failures + 1)
