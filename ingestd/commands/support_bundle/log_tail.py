"""The last events of the daemon's log, without their texts."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator
from datetime import datetime

from ingestd.commands.support_bundle.structure import TEXT, event_fields, field_types
from ingestd.settings.log import LogSettings
from ingestd.telemetry import Event, catalogue, event_name

_LINES = 1_000
_BYTES = 4 << 20
"""The number of bytes that are read from the end of a log file."""
_SECONDS = 20.0
"""Time limit for the journal."""
_FRAME = re.compile(
    r'^ *File "[^"\n]*?([A-Za-z_][\w]{0,60}\.py)", line (\d{1,7}), in ([A-Za-z_<][\w.<>]{0,100})$', re.MULTILINE
)
_LEVELS = frozenset({"debug", "info", "warning", "error"})


def last_events(
    settings: LogSettings, *, known: Collection[str], journalctl: str = "journalctl"
) -> Iterator[dict[str, object]]:
    """Yield the last events, oldest first: time, level, name, and members that are numbers or declared alternatives.

    Raises:
        OSError, subprocess.SubprocessError: the log can't be read.
    """
    kinds = _declared_events()
    for line in _last_lines(settings, journalctl):
        yield _shown(line, kinds, known)


def _last_lines(settings: LogSettings, journalctl: str) -> list[bytes]:
    if settings.file is not None:
        with settings.file.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _BYTES))
            return file.read(_BYTES).splitlines()[-_LINES:]
    command = [
        shutil.which(journalctl) or journalctl, f"--unit={settings.unit}", "--output=cat", "--no-pager", "--quiet",
        f"--lines={_LINES}",
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603 - fixed options; the unit's name is validated
        command, capture_output=True, timeout=_SECONDS, check=True, stdin=subprocess.DEVNULL
    )
    return done.stdout.splitlines()[-_LINES:]


def _shown(line: bytes, kinds: dict[str, dict[str, object]], known: Collection[str]) -> dict[str, object]:
    try:
        event = json.loads(line)
    except ValueError:  # the line is not JSON, such as a message of the interpreter, or is not complete yet
        return {"event": TEXT}
    if not isinstance(event, dict):
        return {"event": TEXT}
    name, level = str(event.get("event")), event.get("level")
    shown: dict[str, object] = {"timestamp": _time(event.get("timestamp"))}
    shown["level"] = level if level in _LEVELS else TEXT
    shown["event"] = name if name in kinds else TEXT
    shown |= event_fields(event, kinds.get(name, {}), known=known)
    if isinstance(trace := event.get("traceback"), str):
        # The messages of exceptions are left out, because they may quote values.
        shown["traceback"] = [f"{file}:{number} {function}" for file, number, function in _FRAME.findall(trace)]
    return shown


def _time(text: object) -> str:
    try:
        return datetime.fromisoformat(str(text)).isoformat()
    except ValueError:
        return TEXT


def _declared_events() -> dict[str, dict[str, object]]:
    """Return the declared types of each event's fields, by the name of the event."""
    for module in pkgutil.iter_modules(catalogue.__path__):
        importlib.import_module(f"{catalogue.__name__}.{module.name}")
    found: dict[str, dict[str, object]] = {"log_lines_dropped": {"lines": int}, "library_log": {}}
    waiting = list(Event.__subclasses__())
    while waiting:
        kind = waiting.pop()
        found[event_name(kind)] = field_types(kind)
        waiting += kind.__subclasses__()
    return found
