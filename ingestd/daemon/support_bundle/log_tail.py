"""The last events of the daemon's log, without their texts."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator
from datetime import datetime

from ingestd.daemon.logs.reader import DaemonLog, find_log
from ingestd.daemon.logs.selection import LogLine, LogSelection
from ingestd.daemon.support_bundle.structure import TEXT, event_fields, field_types
from ingestd.settings.log import LogSettings
from ingestd.telemetry import Event, catalogue, event_name

LINES = 1_000
_FRAME = re.compile(
    r'^ *File "[^"\n]*?([A-Za-z_][\w]{0,60}\.py)", line (\d{1,7}), in ([A-Za-z_<][\w.<>]{0,100})$', re.MULTILINE
)
_LEVELS = frozenset({"debug", "info", "warning", "error"})


def last_events(settings: LogSettings, *, known: Collection[str]) -> Iterator[dict[str, object]]:
    """Yield the last events, the oldest first: time, level, name, and members that are numbers or declared alternatives.

    Raises:
        NoLog, JournalUnreadable, OSError: the log can't be read.
    """
    kinds = _declared_events()
    reader = DaemonLog(log=find_log(settings), selection=LogSelection())
    for line in reader.last_lines(count=LINES):
        yield _shown(line, kinds, known)


def _shown(line: LogLine, kinds: dict[str, dict[str, object]], known: Collection[str]) -> dict[str, object]:
    if line.event is None:
        return {"event": TEXT}
    name, level = str(line.event.get("event")), line.event.get("level")
    shown: dict[str, object] = {"timestamp": _time(line.event.get("timestamp"))}
    shown["level"] = level if level in _LEVELS else TEXT
    shown["event"] = name if name in kinds else TEXT
    shown |= event_fields(line.event, kinds.get(name, {}), known=known)
    if isinstance(trace := line.event.get("traceback"), str):
        # Not the messages of the exceptions, because they may quote values.
        shown["traceback"] = [f"{file}:{number} {function}" for file, number, function in _FRAME.findall(trace)]
    return shown


def _time(text: object) -> str:
    try:
        return datetime.fromisoformat(str(text)).isoformat()
    except ValueError:
        return TEXT


def _declared_events() -> dict[str, dict[str, object]]:
    """Return the declared types of the fields of each event by the event's name."""
    for module in pkgutil.iter_modules(catalogue.__path__):
        importlib.import_module(f"{catalogue.__name__}.{module.name}")
    found: dict[str, dict[str, object]] = {"log_lines_dropped": {"lines": int}, "library_log": {}}
    waiting = list(Event.__subclasses__())
    while waiting:
        kind = waiting.pop()
        found[event_name(kind)] = field_types(kind)
        waiting += kind.__subclasses__()
    return found
