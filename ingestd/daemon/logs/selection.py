"""Which lines of the log are wanted, and the text form of a line. Pure rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ingestd.process.redaction import redact
from ingestd.process.terminal_text import safe_line, terminal_line
from ingestd.settings.schedule import duration_seconds

LEVELS = ("debug", "info", "warning", "error")
_FIRST = ("timestamp", "level", "event")


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log. ``event``: its members, None if the line is no event, such as a message of the interpreter."""

    text: str
    event: Mapping[str, Any] | None

    def formatted(self) -> str:
        """Return the line for people: time, level, event, and then the other members. Secrets are masked."""
        if self.event is None:
            return safe_line(self.text)
        first = [str(self.event.get(name, "")) for name in _FIRST]
        rest = [f"{name}={_value(value)}" for name, value in self._members().items() if name not in _FIRST]
        return terminal_line("  ".join([f"{first[0]} {first[1]:<7} {first[2]}", *rest]))

    def as_json(self) -> str:
        """Return the line as a JSON object; a line that is no event is its member ``message``."""
        return json.dumps(self._members(), ensure_ascii=False)

    def _members(self) -> dict[str, object]:
        members = self.event if self.event is not None else {"message": self.text}
        return {name: redact(value, name) for name, value in members.items()}


def parse_line(text: str) -> LogLine:
    """Return a line of a file or of the journal."""
    event = None
    if text.startswith("{"):
        try:
            event = json.loads(text)
        except ValueError:  # such as a line that is being written
            event = None
    return LogLine(text=text, event=event if isinstance(event, dict) else None)


class LogSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The least severe level, a pipeline, and the earliest time. A line that is no event has none of them."""

    level: str = "debug"
    pipeline: str = ""
    since: datetime | None = None

    @property
    def is_everything(self) -> bool:
        """Return True if every line is wanted."""
        return self == LogSelection()

    def wants(self, line: LogLine) -> bool:
        """Return True if the line is wanted."""
        if self.is_everything:
            return True
        event = line.event
        if event is None:
            return False
        level = event.get("level")
        severe = LEVELS.index(level) >= LEVELS.index(self.level) if level in LEVELS else self.level == "debug"
        of_pipeline = not self.pipeline or self.pipeline in _pipelines(event)
        return severe and of_pipeline and self._is_recent(event)

    def _is_recent(self, event: Mapping[str, Any]) -> bool:
        if self.since is None:
            return True
        try:
            at = datetime.fromisoformat(str(event.get("timestamp")))
        except ValueError:
            return False
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) >= self.since


def _pipelines(event: Mapping[str, Any]) -> list[Any]:
    several = event.get("pipelines")
    return [event.get("pipeline"), *(several if isinstance(several, list) else [])]


def earliest_time(text: str, *, now: datetime) -> datetime:
    """Return the time of ``15m`` (before ``now``), ``2026-11-23`` or ``2026-11-23T06:00`` (UTC without a zone).

    Raises:
        ValueError: a sentence.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            seconds = duration_seconds(text)
        except ValueError:
            raise ValueError("Expected a time such as 2026-11-23T06:00, in UTC, or a duration such as 15m.") from None
        return datetime.fromtimestamp(now.timestamp() - seconds, tz=UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _value(value: object) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)
