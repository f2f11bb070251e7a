"""The state of one host, for commands, metrics and pages."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ingestd.standby.identity import LeaseKind

Role: TypeAlias = Literal["standby", "active"]


class StandbyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of this host. The names of the members are part of `ingestd status --json`.

    ``holder``: the host that holds the lease; ``here``: this host. ``lease_seconds``: the seconds until the lease ends.
    ``lease_store``: where the lease is stored. ``shipped_at``: the time of the newest shipment in seconds since the epoch, None
    if there is none; ``shipment_age``: its age in seconds. ``waiting_sinks``: sinks that get no entries before their sources
    are read. ``failures``: sentences about present failures.
    """

    role: Role
    here: str
    holder: str
    epoch: int
    lease_seconds: float
    lease_store: LeaseKind
    place: str
    shipped_at: float | None
    shipment_age: float | None
    waiting_sinks: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The state as sentences."""
        if self.role == "active":
            first = f"This daemon ({self.here}) is active with epoch {self.epoch}."
        elif self.holder and self.lease_seconds:
            first = f"This daemon ({self.here}) is a standby: {self.holder} is active with epoch {self.epoch}."
        else:
            first = f"This daemon ({self.here}) is a standby; no daemon holds the lease now."
        age = (
            "no shipment yet" if self.shipment_age is None else f"the newest shipment is {self.shipment_age:.0f} s old"
        )
        lines = [f"{first} The lease ends in {self.lease_seconds:.0f} s; {age} ({self.place})."]
        if self.lease_store == "database":
            lines.append(
                "The service offers no leases, so the lease is in that database. It refuses no late request of a former daemon."
            )
        if self.waiting_sinks:
            lines.append(
                f"These sinks get no entries before all of their sources are read: {', '.join(self.waiting_sinks)}."
            )
        return (*lines, *self.failures)

    @property
    def refusal(self) -> str:
        """Why a standby refuses a command, and where to run the command."""
        if not self.holder:
            return "This daemon is a standby, and no daemon is active now. Run the command on the host that takes over."
        return f"This daemon is a standby. Run the command on the active host: {self.holder}."
