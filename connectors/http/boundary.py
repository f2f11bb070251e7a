"""The boundary of the last reading: the time or number up to which records were read, and the known records at this boundary.

A service returns the records since a time, including the records with exactly this time. So it sends the records at the
boundary again, and some of these records may be new. The cursor has digests of the records that were read. A record that was
changed again at the same time has another digest, so it counts as new.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from connectors.http.collection import Faulty
from connectors.http.since import ChangeMark, NoRank, Rank, back, read_change
from connectors.http.spool import Block, Spool, Stored, digest_of
from ingestd.sdk import Cursor

MOST = 10_000
"""If more records are at the boundary, the cursor has no digests: each reading yields these records again, without effect."""

_SLACK_SECONDS = 300
"""How far the clock of the service may be ahead of the clock of this machine."""
_DAY_SECONDS = 86_400


class Boundary:
    """The boundary between read and new records. It moves with each block. ``cursor``: the stored cursor; may be empty.

    A time after ``now`` (seconds since the epoch) does not move the boundary, because records that change until that time would
    be lost. A stored time is in the future if the clock of this machine was set back. Then everything is requested again.
    """

    def __init__(self, cursor: Cursor, *, overlap: float, now: float) -> None:
        seen = cursor.get("seen")
        self._latest: Rank = (Decimal(now) + _SLACK_SECONDS, "time")
        self._last = self._usable(str(cursor.get("since") or ""))
        self._seen = set(map(str, seen)) if isinstance(seen, list) else set()
        self._overlap = overlap
        self._again: list[tuple[Stored, str]] = []
        self._faults: list[str] = []

    @property
    def asked(self) -> str:
        """The time or number from which records are requested; empty if all records are requested."""
        return back(self._last, self._overlap) if self._last else ""

    def divide(self, spool: Spool) -> list[Stored]:
        """Return the records that were not read before, sorted by change time or number.

        Also move the boundary to the newest known record that no new record precedes. The boundary may be before this record:
        a record with a future time does not move the boundary when it is read.
        """
        fresh: list[Stored] = []
        for stored in spool.stored:
            digest = digest_of(spool.text(stored)) if self._seen else ""
            if digest in self._seen:
                self._again.append((stored, digest))
            else:
                fresh.append(stored)
        fresh.sort(key=_order)
        known = [stored for stored, _ in self._again if not fresh or _order(stored)[0] <= _order(fresh[0])[0]]
        self._move_to(sorted(known, key=_order))
        return fresh

    def new_faults(self, faulty: Sequence[Faulty]) -> list[Faulty]:
        """Return the faulty records that were not rejected before."""
        self._faults = [one.digest for one in faulty][:MOST]
        return [one for one in faulty if one.digest not in self._seen]

    def pass_over(self, block: Block) -> dict[str, object]:
        """Move the boundary to the end of a block of new records (`divide`). Return the cursor's members after the block."""
        self._move_to([stored for stored, _ in block])
        lowest = read_change(self.asked).rank if self._last else None
        self._again += [(stored, "") for stored, _ in block]
        kept = [(stored, digest) for stored, digest in self._again if lowest is None or _order(stored)[0] >= lowest]
        texts = {stored.number: text for stored, text in block}
        self._again = [(stored, digest or digest_of(texts[stored.number])) for stored, digest in kept]
        seen = sorted({digest for _, digest in self._again} | set(self._faults))
        return {"since": self._last, "seen": seen if len(seen) <= MOST else []}

    def _move_to(self, records: Sequence[Stored]) -> None:
        """Move the boundary forward to the last of the sorted ``records`` that does not have a time in the future."""
        changes = (stored.change for stored in reversed(records))
        newest = next((change for change in changes if change is not None and self._can_end(change.rank)), None)
        if newest is not None and (not self._last or newest.rank > read_change(self._last).rank):
            self._last = newest.text

    def _usable(self, last: str) -> str:
        """Return the boundary ``last`` of a cursor; empty if it has no rank, or is in the future."""
        try:
            return last if self._can_end(read_change(last).rank) else ""
        except NoRank:
            return ""

    def _can_end(self, rank: Rank) -> bool:
        return rank[1] != "time" or rank <= self._latest


def future_changes(spool: Spool, now: float) -> list[ChangeMark]:
    """Return the change times more than a day after ``now``. A day is tolerated, because a time may be in local time."""
    least = Decimal(now) + _DAY_SECONDS
    changes = (stored.change for stored in spool.stored)
    return [change for change in changes if change is not None and change.rank[1] == "time" and change.rank[0] > least]


def _order(stored: Stored) -> tuple[Rank, int]:
    if stored.change is None:
        raise AssertionError("every record of an incremental reading has a value of change")
    return stored.change.rank, stored.number
