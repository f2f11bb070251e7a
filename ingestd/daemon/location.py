"""The text forms of a location in a source."""

from __future__ import annotations

from ingestd.core.record import Position, location_text
from ingestd.mirror.rejections import Rejection


def format_location(partition: str, position: Position | None) -> str:
    """Return ``m.csv, row 4``, ``parts, part=4711``, or only the partition."""
    if position is None:
        return partition
    return f"{partition}, {location_text(position)}"


def format_origin(rejection: Rejection) -> str:
    """Return ``budget · budget.csv, row 3 · key 00417.mass``."""
    location = format_location(rejection.partition, rejection.position)
    key = f" · key {rejection.key}" if rejection.key else ""
    return f"{rejection.pipeline} · {location}{_column(rejection)}{key}"


def format_rejection(rejection: Rejection) -> str:
    """Return ``budget · budget.csv, row 3: The value is empty.``, with the name of the file once."""
    return f"{format_origin(rejection)}: {rejection.reason.removeprefix(f'{rejection.partition}: ')}"


def _column(rejection: Rejection) -> str:
    """Return ``, column mass_kg`` for an entry. The reason of a rejected record contains its column already."""
    return f", column {rejection.field}" if rejection.subject == "entry" and rejection.field else ""
