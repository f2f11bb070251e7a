"""Checks that several suites use: the end of a source, cursors of other sources, and secrets in sentences."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from ingestd.core.errors import SourceError
from ingestd.core.record import Cursor, Partition
from ingestd.sdk.batches import attach_rejects
from ingestd.sdk.connector import Connector, Verifies
from ingestd.sdk.testing.source_reader import check

STOP_SECONDS = 2.0
"""The maximum time in which a reading must end."""
_TOLERANCE = 1.25
"""A source may use the whole time, as libpq does for a connection, and the check notices the end a little later."""
STOP_ATTEMPTS = 3
"""The number of attempts to end a reading. One of them must be in time; the machine may delay all other attempts."""
_WAIT_SECONDS = 30.0

FOREIGN_CURSORS: tuple[Cursor, ...] = ({}, {"no such member": [1, {"a": None}]})
"""Cursors of another connector, which the pipeline may have used before."""


def future_cursors(own: Cursor) -> Iterator[Cursor]:
    """Yield cursors as a later version of the connector may store them: with a new member, or with a member of another type."""
    yield {**own, "of a later version": {"a": 1}}
    for name, value in own.items():
        other: object = ["of a later version"] if isinstance(value, Mapping) else {"of a later version": [1]}
        yield {**own, name: other}


def check_ends_in_time(end: Callable[[], float]) -> None:
    """Fail if ``end``, which ends a reading and measures the time, exceeds `STOP_SECONDS` in each of `STOP_ATTEMPTS` calls."""
    fastest = math.inf
    for _ in range(STOP_ATTEMPTS):
        fastest = min(fastest, end())
        if fastest <= STOP_SECONDS * _TOLERANCE:
            return
    raise AssertionError(
        f"A reading ends {fastest:.1f} seconds after context.stopping and interrupt(); it must within {STOP_SECONDS:g} seconds."
    )


def end_while_it_reads(connector: Connector) -> float:
    """End a reading as the runtime does at shutdown, and close the connector. Return the seconds until the reading ended."""
    begun, ended = threading.Event(), threading.Event()

    def read() -> None:
        try:
            for partition in connector.partitions():
                reading = iter(connector.read(partition, None))
                begun.set()
                for _ in attach_rejects(reading):
                    if connector.context.stopping.is_set():
                        break
        except SourceError:
            begun.set()  # a reading that is interrupted may raise it
        finally:
            begun.set()
            ended.set()

    thread = threading.Thread(target=read, name="reading", daemon=True)
    thread.start()
    check(begun.wait(_WAIT_SECONDS), "partitions() does not return.")
    seconds = stop_and_wait(connector, ended)
    thread.join()
    connector.close()
    return seconds


def stop_and_wait(connector: Connector, ended: threading.Event) -> float:
    """Request the end of a reading as the runtime does, and wait until it has ``ended``. Return the seconds of the wait."""
    signalled = time.monotonic()
    connector.context.stopping.set()
    connector.interrupt()
    check(ended.wait(_WAIT_SECONDS), "A reading does not end after context.stopping and interrupt().")
    return time.monotonic() - signalled


def check_accepts(connector: Connector, partition: Partition, cursor: Mapping[str, object]) -> None:
    """Fail if a reading from a cursor of another source raises an unexpected exception."""
    try:
        for _ in attach_rejects(connector.read(partition, cursor)):
            pass  # the records are not compared, because the reading may begin at the start
    except SourceError as error:
        check(str(error).endswith((".", "?", "!")), f"The error about the cursor is not a sentence: {str(error)!r}.")
    except Exception as error:
        raise AssertionError(f"Reading {partition.name} after the cursor {dict(cursor)} fails: {error!r}.") from error


def sentences_of(connector: Connector) -> list[str]:
    """Return the sentences of a connector: its checks, notices, health and rejects, and the error of a failed reading."""
    found: list[str] = []
    try:
        for partition in connector.partitions():
            for batch in attach_rejects(connector.read(partition, None)):
                found += [reject.reason for reject in batch.rejects]
    except SourceError as error:
        found.append(str(error))
    if isinstance(connector, Verifies):
        found += [step.sentence for step in connector.verify()]
    found += connector.notices()
    if (health := connector.health()) is not None:
        found.append(health.sentence)
    return found


def check_no_secret(sentences: Iterable[str], secrets: Iterable[str]) -> None:
    """Fail if a sentence contains a secret."""
    for sentence in sentences:
        for secret in secrets:
            check(secret not in sentence, f"A sentence contains a secret: {sentence.replace(secret, '…')!r}.")
