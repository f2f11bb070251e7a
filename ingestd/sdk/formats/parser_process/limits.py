"""The limits of a parser process."""

from __future__ import annotations

import msgspec


class ParserLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for one file, and for the processes.

    ``memory_bytes``: enough for a workbook of 2 GiB of XML. ``silent_seconds``: the longest time between two messages of
    the process. ``idle_seconds``: how long a process without work is kept. ``processes``: how many run at the same time, for
    all connectors together.
    """

    memory_bytes: int = 3 * 2**30
    cpu_seconds: int = 300
    silent_seconds: float = 600.0
    idle_seconds: float = 60.0
    processes: int = 2
