"""Named events with typed fields. The package `catalogue` lists all of them.

A component gets an `Emit` function and calls it with each event. The code that creates the component decides what the function
does: for example, it writes a log line, counts a metric, or collects the events of a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

import msgspec
import structlog

from ingestd.process.logs import complete_configuration


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all events. The name of a subclass is in the past tense; its docstring states when the event is emitted.

    Events are structs, because every command imports all events, and a struct class is created forty times faster than a
    dataclass.
    """

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "info"


class DebugEvent(Event, frozen=True, kw_only=True):
    """An event for troubleshooting."""

    level = "debug"


class WarningEvent(Event, frozen=True, kw_only=True):
    """An event that an operator should know about."""

    level = "warning"


class ErrorEvent(Event, frozen=True, kw_only=True):
    """An event that needs the attention of an operator."""

    level = "error"


Emit: TypeAlias = Callable[[Event], None]


def event_name(kind: type[Event]) -> str:
    """Return the event's name in the log: ``batch_committed`` for ``BatchCommitted``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


def log_event(event: Event) -> None:
    """Write an event to the process's log."""
    complete_configuration()
    structlog.get_logger().log(_LEVELS[event.level], event_name(type(event)), **msgspec.structs.asdict(event))


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
