"""What the simulations share: the trace, the first violation, and the end of a run."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

from ingestd.telemetry import Event
from tests.simulation.configurations import WORKSPACE
from tests.simulation.loop import NeverIdle


class Violation(AssertionError):
    """An invariant was violated; the message has the trace."""


class TracedWorld(ABC):
    """A simulation. ``counts``: how often something happened that must happen in some seeds."""

    def __init__(self) -> None:
        self.trace: list[tuple[float, str | Event]] = []
        self.counts: Counter[str] = Counter()
        self._violation = ""
        self._value = 0

    @abstractmethod
    def _fail(self, reason: str) -> NoReturn:
        """Raise Violation with the trace."""

    def _perform(self, *phases: Callable[[], None]) -> None:
        """Perform phases in turn; any exception is a violation."""
        try:
            for phase in phases:
                phase()
        except Violation:
            raise
        except NeverIdle as error:
            self._fail(str(error))
        except Exception:  # noqa: BLE001 - any exception needs the trace to be understood
            self._fail(traceback.format_exc())

    def _violate(self, sentence: str) -> None:
        """Note a violation where none can be raised; the first one counts."""
        self._violation = self._violation or sentence

    def _new_value(self) -> str:
        self._value += 1
        return str(self._value)

    def lines(self) -> list[str]:
        """Return the trace with the seconds since the start."""
        began = self.trace[0][0]
        return [f"{at - began:10.4f}  {line}".replace(f" in {WORKSPACE}", "") for at, line in self.trace]
