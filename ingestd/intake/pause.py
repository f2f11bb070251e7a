"""Pauses all pipelines while the state file cannot be written; one pipeline at a time tries again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ingestd.core.backoff import Backoff
from ingestd.core.errors import MirrorFull
from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import IntakePaused, IntakeResumed

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=10.0)


class IntakePause:
    """The pause that all pipelines share. Its methods belong to the event loop.

    ``random`` returns numbers from 0 to 1 for the jitter.
    """

    def __init__(self, *, emit: Emit, random: Callable[[], float]) -> None:
        self._emit = emit
        self._random = random
        self.sentence = ""
        """Why pipelines wait; empty if they do not wait."""
        self._failures = 0
        self._until = 0.0
        self._trying = False
        self._changed = ChangeSignal()

    @property
    def is_paused(self) -> bool:
        """True while pipelines wait."""
        return self._failures > 0

    @asynccontextmanager
    async def attempt(self, pipeline: str) -> AsyncIterator[ResumeAttempt]:
        """Wait until the pipeline may read. If its attempt writes to the state file, the pause ends for all pipelines.

        Raises:
            MirrorFull: the attempt failed; this begins or prolongs the pause.
        """
        paused = await self._wait()
        attempt = ResumeAttempt()
        try:
            yield attempt
        except MirrorFull as error:
            self._prolong(pipeline, str(error))
            raise
        finally:
            if paused:
                self._trying = False
                if attempt.wrote:
                    self._end()
                self._changed.notify()

    async def _wait(self) -> bool:
        """Wait for the caller's turn. Return False if there is no pause, True if this caller has to try."""
        loop = asyncio.get_running_loop()
        while True:
            known = self._changed.generation
            if not self._failures:
                return False
            left = self._until - loop.time()
            if not self._trying and left <= 0:
                self._trying = True
                return True
            await self._changed.wait_past(known, seconds=None if self._trying else left)

    def _prolong(self, pipeline: str, sentence: str) -> None:
        self._failures += 1
        self.sentence = sentence
        # At least half of the wait is fixed.
        delay = (_BACKOFF.ceiling(self._failures) + _BACKOFF.delay(self._failures, self._random())) / 2
        self._until = asyncio.get_running_loop().time() + delay
        if self._failures == 1:
            self._emit(IntakePaused(pipeline=pipeline, sentence=sentence, retry_in_seconds=round(delay, 1)))

    def _end(self) -> None:
        if self._failures:
            self._failures, self.sentence = 0, ""
            self._emit(IntakeResumed())


class ResumeAttempt:
    """The result of an attempt; the caller sets ``wrote`` if its pass has written to the state file."""

    def __init__(self) -> None:
        self.wrote = False
