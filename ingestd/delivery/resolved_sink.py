"""The sink that a lane delivers to, as the service identifies it."""

from __future__ import annotations

import msgspec

from ingestd.wire.bulk import BulkLimits
from ingestd.wire.origin import OriginLimits


class ResolvedSink(msgspec.Struct, frozen=True, kw_only=True):
    """The service's ids of a workspace and a sink.

    ``bulk``: None if the service takes only documented requests with one entry. ``origin``: None if it takes no origins.
    """

    workspace: str
    sink: str
    bulk: BulkLimits | None
    origin: OriginLimits | None

    def __str__(self) -> str:
        return f"{self.workspace}/{self.sink}"
