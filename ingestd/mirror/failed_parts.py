"""Failed parts of the daemon that wait for their restart."""

from __future__ import annotations

import msgspec


class FailedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part that ended with an unexpected exception. Times are seconds since the epoch.

    ``failures``: number of failures since ``since`` without a recovery; ``retry_at``: time of the restart.
    """

    part: str
    sentence: str
    failures: int
    since: float
    retry_at: float
