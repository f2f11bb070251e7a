"""When a copy of a SQLite file in steps goes on, is made at once, or is given up."""

import sqlite3

import pytest

from connectors.database import DatabaseOptions
from connectors.database.limits import Deadline
from connectors.database.sqlite_copy import CopyProgress, LockedTooLong, WrittenMeanwhile
from ingestd.sdk import SourceUnavailable

OK, PAGE, PAGES = 0, 4096, 100_000
STEP_PAGES = 4096


class Steps:
    """A copy of a file of 400 MB. Each step takes ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0
        options = DatabaseOptions.model_validate({"url": "sqlite:///pdm.db", "table": "p"})
        self._progress = CopyProgress(options, page_size=PAGE, deadline=Deadline(options), clock=lambda: self._now)

    def first(self) -> None:
        """One step from the start of the file, as after each write of the owner."""
        self._now += self._seconds
        self._progress.after_step(OK, PAGES - STEP_PAGES, PAGES)

    def all(self) -> None:
        for remaining in range(PAGES - STEP_PAGES, -1, -STEP_PAGES):
            self._now += self._seconds
            self._progress.after_step(OK, remaining, PAGES)


def test_a_copy_that_nothing_interrupts_goes_on_however_slow_it_is() -> None:
    Steps(seconds=10).all()


def test_a_copy_that_was_interrupted_often_is_made_at_once_if_that_is_fast() -> None:
    steps = Steps(seconds=0.01)
    for _ in range(3):
        steps.first()
    with pytest.raises(WrittenMeanwhile):
        steps.first()


def test_a_copy_that_was_interrupted_often_is_given_up_if_it_would_lock_the_file_for_long() -> None:
    steps = Steps(seconds=0.1)
    for _ in range(30):
        steps.first()
    with pytest.raises(SourceUnavailable, match=r"written 30 times while it was copied.*journal_mode = WAL"):
        steps.first()


def test_a_file_that_stays_locked_ends_the_copy() -> None:
    options = DatabaseOptions.model_validate({"url": "sqlite:///pdm.db", "table": "p"})
    progress = CopyProgress(options, page_size=PAGE, deadline=Deadline(options))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        progress.check(sqlite3.SQLITE_BUSY, PAGES, PAGES)


def test_a_copy_at_once_ends_when_it_locks_the_file_for_long() -> None:
    now = [0.0]
    options = DatabaseOptions.model_validate({"url": "sqlite:///pdm.db", "table": "p"})
    progress = CopyProgress(options, page_size=PAGE, deadline=Deadline(options), clock=lambda: now[0])
    check = progress.at_once()
    now[0] = 0.4
    check(OK, PAGES, 2 * PAGES)
    now[0] = 0.6
    with pytest.raises(LockedTooLong):
        check(OK, PAGES, 2 * PAGES)
    check(OK, 0, 2 * PAGES)  # it is complete
