"""Conversions in the database: begun with a version, claimed under a lease, settled by who holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workspaced.resources.cloud_storage import events, store
from workspaced.resources.cloud_storage.conversion_rules import ErrorClass, Next, after_failure, after_lost_lease
from workspaced.resources.cloud_storage.converters.registry import kind_of
from workspaced.resources.cloud_storage.values import StoredFile, StoredOutput
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "conversions.sql")

CONVERSIONS = "conversions"
"""The channel on which a commit says that there is something to convert, or to stop converting."""

_CLAIMED_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Whoever converts: the origin of events that no request caused. ``now`` is milliseconds since 1970."""

    now: int
    actor: str = "system"
    client_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionClaim:
    """A conversion that is ours for as long as we renew its lease."""

    number: int
    lease: str
    file_id: str
    file_name: str
    content_type: str
    sha256: str
    size: int
    current: bool


def begin(tx: Transaction, version: int, *, file_name: str, content_type: str, now: int) -> None:
    """The conversion of a version, by its number, that was just uploaded."""
    wanted = kind_of(file_name, content_type) is not None
    values = {"version": version, "state": "pending" if wanted else "not_required", "attempt": int(wanted), "now": now}
    tx.run(_SQL["begin"], values)
    if wanted:
        tx.notify(CONVERSIONS)


def ask_again(tx: Transaction, conversion: int, *, force: bool, now: int) -> bool:
    """Have it done once more; whether that changed anything, which it does not while it is to be done anyway (contract C7)."""
    changed = tx.run(_SQL["ask_again"], {"number": conversion, "force": int(force), "now": now})
    if changed:
        tx.run(_SQL["drop_outputs"], {"number": conversion})
        tx.run(_SQL["touch_file"], {"number": conversion})
        tx.notify(CONVERSIONS)
    return bool(changed)


def is_due(reader: ReadTransaction, *, now: int) -> bool:
    """Whether there is anything to claim."""
    return reader.one(_SQL["due"], {"now": now, "most": 1}) is not None


def next_due(reader: ReadTransaction, *, now: int) -> int | None:
    """The next instant after ``now`` at which something is due."""
    row = reader.one(_SQL["next_due"], {"now": now})
    return None if row is None or row[0] is None else int(row[0])


def claim(tx: Transaction, *, lease: str, pace: ConversionSettings, now: int) -> ConversionClaim | None:
    """The conversion that has been due longest, ours from now on; None where none is.

    One whose holder's time is over is taken from him; if that happened too often, it has failed.
    """
    for (number,) in tx.all(_SQL["due"], {"now": now, "most": _CLAIMED_AT_ONCE}):
        if not _take_over(tx, number, pace=pace, now=now):
            continue
        until = now + int(pace.lease_seconds * 1_000)
        if not tx.one(_SQL["claim"], {"number": number, "lease": lease, "until": until, "now": now}):
            continue
        row = tx.one(_SQL["claimed"], {"number": number})
        if row is None:
            raise LookupError(f"conversion {number} is of no file")
        current = row[5] == row[6]
        # the current version goes by the name and type that the file has by now
        file_name, content_type = (row[7], row[8]) if current else (row[0], row[1])
        claimed = ConversionClaim(
            number=number,
            lease=lease,
            file_id=row[4],
            file_name=file_name,
            content_type=content_type,
            sha256=row[2],
            size=row[3],
            current=current,
        )
        _tell(tx, claimed, "started", now=now)
        return claimed
    return None


def _take_over(tx: Transaction, number: int, *, pace: ConversionSettings, now: int) -> bool:
    """Whether it may be begun: a lease that has run out is ended first."""
    lost = tx.one(_SQL["lost"], {"number": number, "now": now})
    if lost is None:
        return True
    held = tx.one(_SQL["lease_of"], {"number": number})
    step = after_lost_lease(pace, failures=lost[1], now=now)
    sentence = "The process that was converting it ended in the middle."
    lease = held[0] if held else None
    _end(tx, number, step, lease=lease, error_class="internal", sentence=sentence, now=now)
    if step.due_at is None:
        row = tx.one(_SQL["claimed"], {"number": number})
        if row is not None and row[5] == row[6]:
            _tell_file(tx, row[4], "failed", now=now)
    return step.due_at is not None


def beat(tx: Transaction, claimed: ConversionClaim, *, pace: ConversionSettings, now: int) -> bool:
    """Renew the lease; whether it is still ours, and the file still there."""
    until = now + int(pace.lease_seconds * 1_000)
    renewed = tx.run(_SQL["beat"], {"number": claimed.number, "lease": claimed.lease, "until": until})
    return bool(renewed) and is_held(tx, claimed)


def is_held(reader: ReadTransaction, claimed: ConversionClaim) -> bool:
    """Whether a conversion is still ours, and its file still there."""
    return reader.one(_SQL["is_held"], {"number": claimed.number, "lease": claimed.lease}) is not None


def succeed(tx: Transaction, claimed: ConversionClaim, outputs: Sequence[StoredOutput], *, now: int) -> bool:
    """It is done, and this is what it made; False where it is not ours any more, and nothing changed."""
    if not tx.run(_SQL["succeed"], {"number": claimed.number, "lease": claimed.lease, "now": now}):
        return False
    tx.run(_SQL["drop_outputs"], {"number": claimed.number})
    for position, output in enumerate(outputs):
        tx.run(_SQL["insert_output"], {"conversion": claimed.number, "position": position, **output._asdict()})
    _tell(tx, claimed, "succeeded", now=now)
    return True


def fail(
    tx: Transaction,
    claimed: ConversionClaim,
    error_class: ErrorClass,
    sentence: str,
    *,
    pace: ConversionSettings,
    now: int,
) -> str | None:
    """It failed: the state that it has now, or None where it is not ours any more."""
    row = tx.one(_SQL["failures_of"], {"number": claimed.number, "lease": claimed.lease})
    if row is None:
        return None
    step = after_failure(pace, error_class, failures=row[0], now=now)
    _end(tx, claimed.number, step, lease=claimed.lease, error_class=error_class, sentence=sentence, now=now)
    if step.due_at is None:
        _tell(tx, claimed, "failed", now=now)
        return "failed"
    tx.run(_SQL["touch_file"], {"number": claimed.number})
    return "pending"


def release(tx: Transaction, claimed: ConversionClaim, *, now: int) -> None:
    """Give it back, to be begun again: who held it is stopping, or the file is gone for now."""
    if tx.run(_SQL["release"], {"number": claimed.number, "lease": claimed.lease, "now": now}):
        tx.run(_SQL["touch_file"], {"number": claimed.number})
        tx.notify(CONVERSIONS)


def _end(
    tx: Transaction, number: int, step: Next, *, lease: str | None, error_class: ErrorClass, sentence: str, now: int
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
        tx.run(_SQL["put_off"], {**values, "due_at": step.due_at})


def _tell(tx: Transaction, claimed: ConversionClaim, verb: str, *, now: int) -> None:
    tx.run(_SQL["touch_file"], {"number": claimed.number})
    if claimed.current:  # the record shows the conversion of the current version only
        _tell_file(tx, claimed.file_id, verb, now=now)


def _tell_file(tx: Transaction, file_id: str, verb: str, *, now: int) -> None:
    file: StoredFile | None = store.find_file(tx, file_id)
    if file is not None:
        events.emit_conversion(tx, System(now=now), verb, file)
