"""Errors of the control socket."""

from __future__ import annotations

from ingestd.core.errors import IngestdError


class RequestRefused(IngestdError):
    """The daemon can't execute a request; the sentence says why and what to do."""


class DaemonEnded(RequestRefused):
    """The daemon ended before it responded. The request may be partly executed."""

    def __init__(self) -> None:
        super().__init__("The daemon ended before it responded. Check 'ingestd status', then run the command again.")
