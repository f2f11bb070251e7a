"""The text form of a location in a source."""

from __future__ import annotations

from ingestd.core.record import Position


def format_location(partition: str, position: Position | None) -> str:
    """Return ``m.csv, row 4``, ``parts, part=4711``, or only the partition."""
    if position is None:
        return partition
    return f"{partition}, row {position}" if isinstance(position, int) else f"{partition}, {position}"
