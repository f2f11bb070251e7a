"""Named events: what happened, in the past tense, with typed fields. The catalogue package lists every one there is.

Whoever has something to tell is handed an `Emit` and calls it with an event; what becomes of it (a log line, a metric,
an assertion in a test) is decided where the daemon is wired.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import structlog


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The root of the catalogue. A subclass is named in the past tense; its docstring says when it is emitted."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "info"


Emit: TypeAlias = Callable[[Event], None]


def event_name(kind: type[Event]) -> str:
    """``BatchCommitted`` is logged as ``batch_committed``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


def log_event(event: Event) -> None:
    """Write an event to the process's log."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    structlog.get_logger().log(_LEVELS[event.level], event_name(type(event)), **fields)


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
