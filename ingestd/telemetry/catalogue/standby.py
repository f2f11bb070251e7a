"""Events of daemons with `--standby`."""

from __future__ import annotations

from ingestd.telemetry.event import ErrorEvent, Event, WarningEvent


class StandbyWaiting(Event, frozen=True, kw_only=True):
    """This daemon is a standby: another daemon holds the lease."""

    holder: str
    epoch: int


class LeaseInDatabase(WarningEvent, frozen=True, kw_only=True):
    """The service offers no leases, so the lease is in the database of the shipments. Then late requests are not refused."""

    place: str


class LeaseTaken(Event, frozen=True, kw_only=True):
    """This daemon took the lease and is active. ``restored``: the restored shipment; empty if none was restored."""

    epoch: int
    holder: str
    restored: str


class LeaseUnconfirmed(WarningEvent, frozen=True, kw_only=True):
    """The service or database did not renew or return the lease. The active daemon stops sending before the lease ends."""

    sentence: str


class LeaseConfirmed(Event, frozen=True, kw_only=True):
    """The lease was renewed or returned again."""


class LeaseLost(WarningEvent, frozen=True, kw_only=True):
    """Another daemon has taken over; this daemon sends nothing more and ends."""

    sentence: str


class ShipmentFailed(ErrorEvent, frozen=True, kw_only=True):
    """The state file could not be shipped. Files are not archived until it is shipped; everything else continues."""

    sentence: str


class ShipmentResumed(Event, frozen=True, kw_only=True):
    """The state file was shipped again after a failure."""


class ShipmentUnusable(ErrorEvent, frozen=True, kw_only=True):
    """A shipment is damaged or encrypted with another key; an older shipment is used."""

    sentence: str


class SinksReadBack(Event, frozen=True, kw_only=True):
    """After a take-over, every source was read and every sink was compared; entries are sent."""

    seconds: float
