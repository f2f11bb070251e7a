"""Damaged Parquet and Arrow files: each is rejected, or has exactly its number of rows.

``COLUMNAR_DAMAGES`` is the number of damaged files of each kind; `make` does not set it, and a long run is a matter of minutes.
"""

from __future__ import annotations

import io
import os
import random
from typing import Any

import polars as pl
import pytest

from connectors.formats.columnar import Arrow, Parquet
from ingestd.sdk import NOTICE, SourceBroken
from tests.support.format_records import read

DAMAGES = int(os.environ.get("COLUMNAR_DAMAGES", "75"))
ROWS = 300
FRAME = pl.DataFrame(
    {
        "number": range(ROWS),
        "text": [f"part-{n}" for n in range(ROWS)],
        "float": [n / 7 for n in range(ROWS)],
        "list": [[n, n + 1] if n % 3 else None for n in range(ROWS)],
        "category": ["xy"[n % 2] for n in range(ROWS)],
    },
    schema_overrides={"category": pl.Categorical},
)


def written(kind: str, compression: Any) -> bytes:
    out = io.BytesIO()
    if kind == "parquet":
        FRAME.write_parquet(out, row_group_size=100, compression=compression)
    elif kind == "arrow":
        FRAME.write_ipc(out, record_batch_size=100, compression=compression)
    else:
        FRAME.write_ipc_stream(out, compression=compression)
    return out.getvalue()


def damaged(data: bytes, generator: random.Random) -> bytes:
    """Return the data cut, with a hole, or with other bytes, often in its last part, where the metadata is."""
    changed = bytearray(data)
    kind = generator.random()
    if kind < 0.15:
        return data[: generator.randrange(len(data))]
    if kind < 0.25:
        at = generator.randrange(len(data))
        del changed[at : at + generator.randrange(1, 64)]
        return bytes(changed)
    for _ in range(generator.choice([1, 1, 1, 3])):
        first = max(0, len(data) - 1500) if generator.random() < 0.4 else 0
        at = generator.randrange(first, len(data))
        changed[at] = generator.choice([changed[at] ^ (1 << generator.randrange(8)), generator.randrange(256), 0, 255])
    return bytes(changed)


@pytest.mark.parametrize(
    ("kind", "compression"),
    [
        ("parquet", "uncompressed"),
        ("parquet", "zstd"),
        ("arrow", "uncompressed"),
        ("arrow", "lz4"),
        ("stream", "uncompressed"),
    ],
)
def test_a_damaged_file_is_rejected_or_has_all_its_rows(kind: str, compression: str) -> None:
    whole, generator = written(kind, compression), random.Random(f"{kind} {compression}")
    file_format = Parquet() if kind == "parquet" else Arrow()
    outcomes = {"rejected": 0, "complete": 0, "flagged": 0}
    for number in range(DAMAGES):
        data = damaged(whole, generator)
        try:
            chunks = read(file_format, data)  # in the parser process
        except SourceBroken:
            outcomes["rejected"] += 1
            continue
        rows = sum(one.records.height for one in chunks)
        is_flagged = kind == "stream" and all(NOTICE in one.facts for one in chunks)
        assert rows == ROWS or is_flagged, f"{kind}, {compression}, damage {number}: {rows} rows"
        outcomes["complete" if rows == ROWS else "flagged"] += 1
    assert outcomes["rejected"], outcomes
    assert outcomes["complete"], outcomes
