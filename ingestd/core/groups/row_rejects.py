"""Rejected records of grouped batches, and the sentences about their groups."""

from __future__ import annotations

import msgspec

from ingestd.core.record import Batch, Reject, located_reason, location_text


class RowRejects(msgspec.Struct):
    """The rejected records of a batch. ``names_group``: the group of the records that are added now is known.

    ``reasons``: of the records with a known group, by their place in the batch.
    """

    batch: Batch
    names_group: bool = False
    reasons: dict[int, str] = msgspec.field(default_factory=dict)
    _found: dict[int, Reject] = msgspec.field(default_factory=dict)

    def add(self, order: int, reason: str, name: str) -> None:
        """Reject the record at ``order`` of the batch because of the field ``name``, unless it is rejected already."""
        if order in self._found:
            return
        position = self.batch.positions[order]
        self._found[order] = Reject(
            position=position if isinstance(position, str) else int(position),
            reason=reason,
            field=name,
            record=self.batch.records.row(order, named=True),
        )
        if self.names_group:
            self.reasons[order] = located_reason(self._found[order])

    def place(self, order: int) -> str:
        """Return the position of a record for a sentence."""
        return location_text(self.batch.positions[order])

    def in_order(self) -> tuple[Reject, ...]:
        """Return the rejected records in the order of the batch."""
        return tuple(self._found[order] for order in sorted(self._found))


def unknown_group(place: str, reason: str) -> str:
    """Return why a partition is rejected that has a rejected record without a known group."""
    return (
        f"The group of {place} is unknown, so the aggregates of any group could lack it; nothing of this source was grouped. "
        f"Correct the source. The reason: {reason}"
    )


def group_reason(reason: str, rejected: int) -> str:
    """Return why a group is rejected, with the reason of the first of its ``rejected`` records."""
    others = rejected - 1
    more = f" {others} more of its records are rejected." if others else ""
    return f"The group is rejected, because its aggregates would lack a record. {reason[:1].upper()}{reason[1:]}{more}"
