"""The record of a writer's lease."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from workspaced.core.json_schema import Count, Timestamp


class WriterLeaseRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """The lease of a writer."""

    writer: str
    holder: Annotated[str, Meta(description="The process that holds the lease, or that held it last.")]
    epoch: Annotated[
        int, Meta(description="The epoch of the holder's requests. It rises each time that the lease is taken.")
    ]
    milliseconds_left: Annotated[
        Count, Meta(description="The time until the lease ends, by the clock of the database; 0: it has ended.")
    ]
    successor: Annotated[str | None, Meta(description="The process that asks the holder to release the lease.")]
    now: Annotated[Timestamp, Meta(description="The present time, by the same clock as updatedAt.")]
