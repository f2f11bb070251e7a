"""Comparison of texts for operators with golden files, so that a changed sentence is visible in a review.

``INGESTD_WRITE_GOLDEN=1`` rewrites the files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from ingestd.telemetry.event import Event, event_name
from tests.support.engineering_folder import timeless

GOLDEN = Path(__file__).parents[1] / "golden"
DELIVERY_TEXTS = GOLDEN / "delivery"


def masked(text: str) -> str:
    """Replace times, ids and ports by constants."""
    for pattern, mask in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    ):
        text = re.sub(pattern, mask, text)
    return text


def logged(event: Event) -> str:
    """Return an event as a log line, without ``seconds``, which is random."""
    fields = msgspec.structs.asdict(event)
    fields.pop("seconds", None)
    return f"{event.level}: {event_name(type(event))} " + " ".join(f"{name}={value}" for name, value in fields.items())


def check_delivery_text(name: str, text: str) -> None:
    """Compare a text about a delivery with the golden file of this name."""
    _check(DELIVERY_TEXTS / f"{name}.txt", text)


def check_command_output(name: str, text: str) -> None:
    """Compare the output of a command with the golden file of this name; times and ids are masked."""
    _check(GOLDEN / "cli" / "output" / f"{name}.txt", timeless(text))


def check_statements(name: str, text: str) -> None:
    """Compare the SQL for a kind of database with its golden file."""
    _check(GOLDEN / "databases" / f"{name}.sql", text)


def _check(file: Path, text: str) -> None:
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
