"""What a connector is told of a partition that is settled, for tests that settle one by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ingestd.core.record import Rejected, Settlement


def settlement(
    *, rejects: Iterable[Rejected] = (), ended: float = 1e9, records: int = 0, facts: Mapping[str, str] | None = None
) -> Settlement:
    """A reading of ``records`` records that created an entry each, but for those in ``rejects``."""
    parked = tuple(rejects)
    return Settlement(
        run=1, started=ended - 1, ended=ended, pipeline="test", sink="Masses in bench", digest="d", records=records,
        created=records - len(parked), updated=0, unchanged=0, removed=0, rejected=len(parked),
        refused=sum(one.subject != "record" for one in parked), facts=facts or {}, rejects=lambda: iter(parked),
    )  # fmt: skip
