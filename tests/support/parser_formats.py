"""A format with a parser that fails. The parser process imports the format by name, like real formats."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import polars as pl

from connectors.formats import RecordChunk, RecordLocation
from ingestd.sdk.formats import IsolatedFormat


def chunk(text: str) -> RecordChunk:
    return RecordChunk(
        records=pl.DataFrame({"text": [text]}),
        positions=pl.Series("position", [1], dtype=pl.Int64),
        rejects=(),
        end=RecordLocation(row=1),
    )


class Misbehaving(IsolatedFormat):
    """Yields the process id of its parser, then does what the setting ``then`` says."""

    suffixes: ClassVar[tuple[str, ...]] = (".odd",)

    type: Literal["odd"] = "odd"
    then: Literal["end", "spin", "allocate", "abort", "raise", "environment"] = "end"

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        del file, name
        yield chunk(str(os.getpid()))
        match self.then:
            case "spin":
                while True:
                    pass
            case "allocate":
                kept = []
                while True:
                    kept.append(bytearray(2**26))
            case "abort":
                os.abort()
            case "raise":
                raise LookupError("no such sheet")
            case "environment":
                yield from (chunk(f"{name}={value}") for name, value in os.environ.items())
            case "end":
                pass
