"""Acknowledgements for tests that call `acknowledge()` of a connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ingestd.core.record import Acknowledgement, Rejected


def acknowledgement(
    *, rejects: Iterable[Rejected] = (), ended: float = 1e9, records: int = 0, facts: Mapping[str, str] | None = None
) -> Acknowledgement:
    """Return the results of a reading of ``records`` records, each of which created an entry, except ``rejects``."""
    rejected = tuple(rejects)
    return Acknowledgement(
        run=1, started=ended - 1, ended=ended, pipeline="test", sink="Masses in bench", digest="d", records=records,
        created=records - len(rejected), updated=0, unchanged=0, removed=0, rejected=len(rejected),
        refused=sum(one.subject != "record" for one in rejected), facts=facts or {}, rejects=lambda: iter(rejected),
    )  # fmt: skip
