"""The bodies of requests about leases (contract M14). Performs no I/O."""

from __future__ import annotations

from typing import Annotated, Final

from workspaced.core.bodies import Body
from workspaced.core.members import Label, Whole

LONGEST_SECONDS: Final = 3_600
_LARGEST_EPOCH: Final = 10**18 - 1


class Holder(Body):
    """The process that sends a request."""

    holder: Annotated[
        str,
        Label(
            longest=128,
            description=("A text that identifies the requesting process; it differs for each process."),
        ),
    ]


class LeaseRequest(Holder):
    """A request to take or renew a lease. ``epoch``: the epoch of the lease to renew; None: take the lease."""

    seconds: Annotated[int, Whole(lowest=1, highest=LONGEST_SECONDS, description="How long the lease lasts from now.")]
    epoch: Annotated[
        int | None,
        Whole(highest=_LARGEST_EPOCH, description="Renews the lease with this epoch. Absent: takes the lease."),
    ] = None


class LeaseRelease(Holder):
    """A request to release the lease with this ``epoch``."""

    epoch: Annotated[int, Whole(highest=_LARGEST_EPOCH, description="The epoch of the lease.")]
    reserved_seconds: Annotated[
        int,
        Whole(highest=LONGEST_SECONDS, description="For how long only the successor may take the lease; 0 by default."),
    ] = 0
