"""Texts for operators as golden files have them: times, ports and ids masked."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from ingestd.telemetry.event import Event, event_name

GOLDEN = Path(__file__).parents[1] / "golden" / "delivery"


def masked(text: str) -> str:
    for pattern, mask in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    ):
        text = re.sub(pattern, mask, text)
    return text


def logged(event: Event) -> str:
    """Return an event as a log line, without its random numbers of seconds."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    fields.pop("seconds", None)
    return f"{event.level}: {event_name(type(event))} " + " ".join(f"{name}={value}" for name, value in fields.items())


def expect_golden(name: str, text: str) -> None:
    """The text is that of the file of this name."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
