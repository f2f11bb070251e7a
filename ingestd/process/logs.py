"""The process's log: lines for a person on a terminal, JSON for programs that collect logs. Neither contains secrets.

Logging never blocks, delays or ends the work that it reports: lines that cannot be written are dropped and counted
(`line_queue`), and the event ``log_lines_dropped`` reports the count when lines can be written again.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, cast

import structlog

from ingestd.process.deferred_imports import is_deferred
from ingestd.process.line_queue import LineQueue
from ingestd.process.redaction import redact, redact_text

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

_LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class _Unconfigured(logging.Formatter):
    """Completes the configuration of its handler, which replaces it."""

    def format(self, record: logging.LogRecord) -> str:
        """As the log is configured."""
        complete_configuration()
        return _handler.format(record)


def configure_logs(*, json: bool | None = None, stream: TextIO | None = None, level: Level = "info") -> None:
    """Send structlog's events and the libraries' warnings to ``stream`` (standard error), one line an event.

    ``json``: None means that a terminal gets lines for reading and everything else gets JSON. A JSON line holds ``timestamp``
    (UTC, milliseconds), ``level``, ``event`` and the event's fields; an exception is the field ``exception``. ``level`` is for
    our own events; libraries that log by `logging` are logged from WARNING on. May be called again; the last call holds. When
    the process exits, queued lines are written for at most ``FLUSH_SECONDS``. If the import of structlog is deferred, its
    configuration is deferred, too, until the first event (`complete_configuration`) or warning of a library.
    """
    global _configuration  # noqa: PLW0603 - a process has one log
    target = stream if stream is not None else sys.stderr
    terminal = target.isatty()
    renderer = partial(_renderer, as_json=not terminal if json is None else json, terminal=terminal)
    file = _replace_handler(target, renderer)
    logging.getLogger().setLevel(logging.WARNING)
    _configuration = partial(_configure_structlog, renderer, file, level=_LEVELS[level])
    if not is_deferred("structlog"):
        complete_configuration()


_configuration: Callable[[], None] | None = None
"""The deferred part of the last `configure_logs`."""


def complete_configuration() -> None:
    """Do what `configure_logs` deferred, if anything. To be called before `structlog.get_logger`."""
    global _configuration  # noqa: PLW0603 - a process has one log
    configuration = _configuration
    if configuration is not None:
        configuration()
        if _configuration is configuration:
            _configuration = None


def _renderer(*, as_json: bool, terminal: bool) -> Processor:
    if as_json:
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=terminal and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
        pad_event_to=0,
    )


def _configure_structlog(renderer: Callable[[], Processor], file: TextIO, *, level: int) -> None:
    formatter = structlog.stdlib.ProcessorFormatter
    first: list[Processor] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, _timestamp]
    # The traceback becomes text before the secrets are masked: an exception's words may quote a URL.
    rest: list[Processor] = [structlog.processors.format_exc_info, _redact, _order, _copy_line, renderer()]
    structlog.configure(
        processors=[*first, *rest],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=file),
        cache_logger_on_first_use=False,
    )
    _handler.setFormatter(
        formatter(
            foreign_pre_chain=[*first, _library],
            processors=[formatter.remove_processors_meta, *rest],
            use_get_message=True,
        )
    )


FLUSH_SECONDS = 2.0
"""How long the end of the process may be delayed by lines that nothing reads."""

_handler: logging.Handler = logging.NullHandler()
_dropped_before = 0


def dropped_lines() -> int:
    """Return how many lines of the log this process has dropped because they could not be written."""
    return _dropped_before + (_handler.dropped if isinstance(_handler, LineQueue) else 0)


def logs_configured() -> bool:
    """Return True if `configure_logs` was called, with a stream that has a descriptor."""
    return isinstance(_handler, LineQueue)


def flush_logs(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait until every line logged so far was written or dropped; return False after ``seconds``.

    To be called before `os._exit`; an orderly exit does it by itself.
    """
    return not isinstance(_handler, LineQueue) or _handler.drain(seconds)


def _replace_handler(target: TextIO, renderer: Callable[[], Processor]) -> TextIO:
    """Use another handler, and return the object to which events are written.

    A stream without a descriptor is written to directly.
    """
    global _handler, _dropped_before  # noqa: PLW0603 - a process has one log
    root = logging.getLogger()
    root.removeHandler(_handler)
    if isinstance(_handler, LineQueue):
        _handler.finish(FLUSH_SECONDS)
        _dropped_before += _handler.dropped

    def report(count: int, reason: str) -> str:
        event: EventDict = {
            "event": "log_lines_dropped",
            "level": "warning",
            "lines": count,
            "sentence": f"{count} lines of the log could not be written and were dropped: {reason}.",
        }
        return str(renderer()(None, "warning", _order(None, "warning", _timestamp(None, "warning", event))))

    try:
        _handler = LineQueue(target.fileno(), report=report)
    except (OSError, ValueError):
        _handler = logging.StreamHandler(target)
    _handler.setFormatter(_Unconfigured())
    root.addHandler(_handler)
    return cast("TextIO", _handler) if isinstance(_handler, LineQueue) else target


atexit.register(flush_logs)


def _timestamp(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _library(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A library's message is a sentence, not one of our event names: log it as such, with the library's name."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["message"] = event["event"]
        event["event"] = "library_log"
        event["library"] = record.name
    return event


_copy: Callable[[EventDict], None] | None = None


def copy_lines(to: Callable[[EventDict], None] | None) -> None:
    """Also pass the fields of every later line to ``to``, with secrets masked; None ends it.

    ``to`` is called in the thread that logs, so it must not wait, change the fields or log.
    """
    global _copy  # noqa: PLW0603 - a process has one log
    _copy = to


def _copy_line(_logger: Any, _method: str, event: EventDict) -> EventDict:
    if _copy is not None:
        _copy(event)
    return event


def _redact(_logger: Any, _method: str, event: EventDict) -> EventDict:
    return {name: _redact_field(value, name) for name, value in event.items()}


_LONGEST_FIELD = 16_384
"""Characters of a text in a line of the log, which may be a traceback. The rest of the text is omitted."""


def _redact_field(value: object, name: str) -> object:
    if not isinstance(value, str):
        return redact(value, name)
    # Redaction takes time in proportion to the text. A secret that the first cut divides is removed by the second cut.
    return str(redact(value[: 4 * _LONGEST_FIELD], name))[:_LONGEST_FIELD]


_FIRST = ("timestamp", "level", "event")


def _order(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> EventDict:
    """The fields that every line has come first, so that raw JSON can be read down a column."""
    return {name: event[name] for name in _FIRST if name in event} | {
        name: value for name, value in event.items() if name not in _FIRST
    }


__all__ = ["Level", "configure_logs", "redact_text"]
