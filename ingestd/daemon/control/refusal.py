"""A daemon that was asked and can't."""

from __future__ import annotations

from ingestd.core.errors import IngestdError


class Refused(IngestdError):
    """The daemon can't do what was asked; a sentence that says why and what to do."""
