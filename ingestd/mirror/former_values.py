"""Former values of entries, for `ingestd trace`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ingestd.core.record import Position

Ending: TypeAlias = Literal["replaced", "removed", "approved", "adopted", "overwritten"]
"""Why a value ended: a source has another one, or none; an approved run has another one; the service's content was adopted; or
a value that was found in the service was overwritten."""

FormerDelivery: TypeAlias = Literal["delivered", "rejected", "sent", "pending", "found"]
"""What became of a former value. ``sent``: it was in a request without a response when it ended. ``pending``: it was never sent.
``found``: the daemon found it in the service."""


class FormerValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that an entry had: of the record at ``position`` of ``partition``, read at ``read_at`` by the run ``run``.

    Times are seconds since the epoch; None if they are not known. ``pipeline`` is empty for a value that was found in the
    service. ``run`` and ``ended_by`` are 0 if there was no run. ``ended_at``: when another value replaced it, or it was removed.
    The names of the members are part of the output of `ingestd trace --json`.
    """

    workspace: str
    sink: str
    value: str | None
    data_type: str
    pipeline: str
    partition: str
    position: Position | None
    run: int
    read_at: float | None
    delivery: FormerDelivery
    delivered_at: float | None
    ended_at: float
    ended_by: int
    ending: Ending
