"""Where a lane delivers to, once its sink is found."""

from __future__ import annotations

from dataclasses import dataclass

from ingestd.wire.bulk import BulkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSink:
    """The service's ids of a sink, and what its answers announce: None means that it knows only the document."""

    workspace: str
    sink: str
    bulk: BulkLimits | None

    def __str__(self) -> str:
        return f"{self.workspace}/{self.sink}"
