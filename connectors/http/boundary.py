"""The end of the last reading: the time or number up to which records were read, and the known records at this boundary.

A service returns the records since a time, including records of this time itself, so it sends the records at the boundary
again. Some of these records may be new. So the cursor has digests of the records that were read. A record that changed within
the same time has another digest, and counts as new, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectors.http.collection import Faulty
from connectors.http.since import Rank, back, read_change
from connectors.http.spool import Block, Spool, Stored, digest_of
from ingestd.sdk import Cursor

MOST = 10_000
"""If there are more records at the boundary, the cursor has no digests. The records are then read again without effect."""


class Boundary:
    """The boundary between read and new records, which moves with each block. ``cursor``: the stored cursor; may be empty."""

    def __init__(self, cursor: Cursor, *, overlap: float) -> None:
        seen = cursor.get("seen")
        self._last = str(cursor.get("since") or "")
        self._seen = set(map(str, seen)) if isinstance(seen, list) else set()
        self._overlap = overlap
        self._again: list[tuple[Stored, str]] = []
        self._faults: list[str] = []

    @property
    def asked(self) -> str:
        """The time or number from which on records are requested; empty: all records."""
        return back(self._last, self._overlap) if self._last else ""

    def divide(self, spool: Spool) -> list[Stored]:
        """Return the records that were not read before, sorted by change time or number."""
        fresh: list[Stored] = []
        for stored in spool.stored:
            digest = digest_of(spool.text(stored)) if self._seen else ""
            if digest in self._seen:
                self._again.append((stored, digest))
            else:
                fresh.append(stored)
        return sorted(fresh, key=_order)

    def new_faults(self, faulty: Sequence[Faulty]) -> list[Faulty]:
        """Return the faulty records that were not rejected before."""
        self._faults = [one.digest for one in faulty][:MOST]
        return [one for one in faulty if one.digest not in self._seen]

    def pass_over(self, block: Block) -> dict[str, object]:
        """Move the boundary to the end of a block of records of `divide`. Return the members of the cursor after it."""
        if block:
            newest = block[-1][0].change
            if newest is not None and (not self._last or newest.rank > read_change(self._last).rank):
                self._last = newest.text
        lowest = read_change(self.asked).rank if self._last else None
        self._again += [(stored, "") for stored, _ in block]
        kept = [(stored, digest) for stored, digest in self._again if lowest is None or _order(stored)[0] >= lowest]
        texts = {stored.number: text for stored, text in block}
        self._again = [(stored, digest or digest_of(texts[stored.number])) for stored, digest in kept]
        seen = sorted({digest for _, digest in self._again} | set(self._faults))
        return {"since": self._last, "seen": seen if len(seen) <= MOST else []}


def _order(stored: Stored) -> tuple[Rank, int]:
    if stored.change is None:
        raise AssertionError("every record of an incremental reading has a value of change")
    return stored.change.rank, stored.number
