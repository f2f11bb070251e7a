"""How a place in a source is written for a person."""

from __future__ import annotations

from ingestd.core.record import Position


def place(partition: str, position: Position | None) -> str:
    """``m.csv, row 4``, ``parts, part=4711``, or the partition alone."""
    if position is None:
        return partition
    return f"{partition}, row {position}" if isinstance(position, int) else f"{partition}, {position}"
