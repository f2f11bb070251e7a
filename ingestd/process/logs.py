"""The process's log: lines for a person on a terminal, JSON for whatever collects them, never a secret in either."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, TypeAlias

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.typing import EventDict, Processor

from ingestd.process.redaction import redact, redact_text

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

_LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class _Lines(logging.StreamHandler[TextIO]):
    """The handler that is ours among those of the root logger, so that it can be replaced and others are left alone."""


def configure_logs(*, json: bool | None = None, stream: TextIO | None = None, level: Level = "info") -> None:
    """Send structlog's events and the libraries' warnings to ``stream`` (standard error), one line an event.

    ``json``: None means that a terminal gets lines for reading and everything else gets JSON. A JSON line holds
    ``timestamp`` (UTC, milliseconds), ``level``, ``event`` and the event's fields; an exception is the field
    ``exception``. ``level`` is for our own events; libraries that log by `logging` are heard from WARNING on. May be
    called again; the last call holds.
    """
    target = stream if stream is not None else sys.stderr
    terminal = target.isatty()
    as_json = not terminal if json is None else json
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
        if as_json
        else ConsoleRenderer(colors=terminal, exception_formatter=plain_traceback, pad_event_to=0)
    )
    before: list[Processor] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, _timestamp]
    # The traceback becomes text before the secrets are masked: an exception's words may quote a URL.
    after: list[Processor] = [structlog.processors.format_exc_info, _redact, _order, renderer]
    structlog.configure(
        processors=[*before, *after],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=False,
    )
    handler = _Lines(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, _library],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
            use_get_message=True,
        )
    )
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _Lines)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)


def _timestamp(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _library(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A library's message is a sentence, not one of our event names: say so, and which library spoke."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["message"] = event["event"]
        event["event"] = "library_spoke"
        event["library"] = record.name
    return event


def _redact(_logger: Any, _method: str, event: EventDict) -> EventDict:
    return {name: redact(value, name) for name, value in event.items()}


_FIRST = ("timestamp", "level", "event")


def _order(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> EventDict:
    """The fields that every line has come first, so that raw JSON can be read down a column."""
    return {name: event[name] for name in _FIRST if name in event} | {
        name: value for name, value in event.items() if name not in _FIRST
    }


__all__ = ["Level", "configure_logs", "redact_text"]
