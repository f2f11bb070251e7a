"""The process's log: lines for people on a terminal, JSON for programs that collect logs. Secrets are masked in both.

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
    """The first formatter. Its first call completes the configuration of the log, which replaces this formatter."""

    def format(self, record: logging.LogRecord) -> str:
        """Complete the configuration, then format the record with the new formatter."""
        complete_configuration()
        return _handler.format(record)


def configure_logs(*, json: bool | None = None, stream: TextIO | None = None, level: Level = "info") -> None:
    """Send structlog's events and the libraries' warnings to ``stream`` (standard error), one line for each event.

    ``json`` None: a terminal gets readable lines, everything else gets JSON. A JSON line holds ``timestamp`` (UTC,
    milliseconds), ``level``, ``event`` and the event's fields; an exception is the field ``exception``. ``level`` is the lowest
    level of logged events. Libraries that log by `logging` are logged from WARNING on. May be called again; the last call
    applies. When the process exits, queued lines are written for at most ``FLUSH_SECONDS``. If the import of structlog is
    deferred, its configuration is deferred, too, until the first event (`complete_configuration`) or warning of a library.
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
    """Do what `configure_logs` deferred, if anything. Call this before `structlog.get_logger`."""
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
    # The traceback becomes text before the secrets are masked, because the message of an exception may contain a URL.
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
"""The maximum time for which unread lines of the log delay the end of the process."""

_handler: logging.Handler = logging.NullHandler()
_dropped_before = 0


def dropped_lines() -> int:
    """Return the number of log lines that this process has dropped because they could not be written."""
    return _dropped_before + (_handler.dropped if isinstance(_handler, LineQueue) else 0)


def logs_configured() -> bool:
    """Return True if `configure_logs` was called, with a stream that has a descriptor."""
    return isinstance(_handler, LineQueue)


def flush_logs(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait until every line logged so far was written or dropped; return False after ``seconds``.

    Call this before `os._exit`; a normal exit calls it already.
    """
    return not isinstance(_handler, LineQueue) or _handler.drain(seconds)


def _replace_handler(target: TextIO, renderer: Callable[[], Processor]) -> TextIO:
    """Replace the handler, and return the stream for events: the new handler, or ``target`` if it has no descriptor."""
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
    """Log a library's message as the event ``library_log`` with the fields ``message`` and ``library``."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["message"] = event["event"]
        event["event"] = "library_log"
        event["library"] = record.name
    return event


_copy: Callable[[EventDict], None] | None = None


def copy_lines(to: Callable[[EventDict], None] | None) -> None:
    """Also pass the fields of every later line to ``to``, with secrets masked; None stops this.

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
"""The maximum number of characters of a text in a log line, such as a traceback. The rest of the text is omitted."""


def _redact_field(value: object, name: str) -> object:
    if not isinstance(value, str):
        return redact(value, name)
    # A long text is cut before its redaction, which would take long. The second cut removes a secret that the first divides.
    return str(redact(value[: 4 * _LONGEST_FIELD], name))[:_LONGEST_FIELD]


_FIRST = ("timestamp", "level", "event")


def _order(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> EventDict:
    """Put the fields of every line first, so that they are aligned in raw JSON."""
    return {name: event[name] for name in _FIRST if name in event} | {
        name: value for name, value in event.items() if name not in _FIRST
    }


__all__ = ["Level", "configure_logs", "redact_text"]
