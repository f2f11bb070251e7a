"""Errors of the control socket."""

from __future__ import annotations

from ingestd.core.errors import IngestdError


class RequestRefused(IngestdError):
    """The daemon can't execute a request; the sentence says why and what to do."""


class DaemonEnded(RequestRefused):
    """The daemon ended before it responded. The request may be partly executed."""

    def __init__(self) -> None:
        super().__init__("The daemon ended before it responded. Check 'ingestd status', then run the command again.")


class DaemonSilent(RequestRefused):
    """The daemon is stopped or hangs. If it continues, it executes the request."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The daemon has not responded for {seconds:.0f} seconds: it is stopped or hangs. 'ingestd status' shows its process."
            " Continue or restart the daemon. If it continues, it may still execute this command."
        )
