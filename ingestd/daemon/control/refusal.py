"""A daemon that was asked and can't."""

from __future__ import annotations

from ingestd.core.errors import IngestdError


class RequestRefused(IngestdError):
    """The daemon can't do what was asked; a sentence that says why and what to do."""


class DaemonEnded(RequestRefused):
    """The daemon ended before it answered; what it was asked for may be half done."""

    def __init__(self) -> None:
        super().__init__("The daemon ended before it answered. Look with 'ingestd status', and ask again.")
