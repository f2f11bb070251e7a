"""Expressions of a mapping over a frame of text, and the same expressions written by hand in polars.

``python -m bench.limits.expressions mapping|polars ROWS TIMES`` prints wall and CPU seconds of each evaluation, without imports,
and the number and a hash of the entries.
"""

from __future__ import annotations

import json
import sys
import time

import polars as pl

from ingestd.core.mapping import EntrySpec, Mapping

SPEC = EntrySpec(
    key="{part}",
    value="{kg} {name}",
    where="rev <> '7'",
    let=(("kg", "mass_g / 1000"), ("name", "COALESCE(UPPER(unit), 'NONE')")),
)
DECIMAL = pl.Decimal(38, 5)


def records(rows: int) -> pl.DataFrame:
    number = pl.int_range(rows, eager=True, dtype=pl.Int64).alias("number").to_frame()
    text = pl.col("number").cast(pl.String)
    return number.select(
        ("P" + text.str.zfill(8)).alias("part"),
        (pl.col("number") % 50).cast(pl.String).alias("rev"),
        (text + "." + (pl.col("number") % 90 + 10).cast(pl.String)).alias("mass_g"),
        pl.when(pl.col("number") % 3 > 0).then("unit " + text).alias("unit"),
    )


def by_hand(frame: pl.DataFrame) -> pl.DataFrame:
    kg = (pl.col("mass_g").cast(DECIMAL) / pl.lit(1000).cast(DECIMAL)).cast(pl.String)
    name = pl.coalesce(pl.col("unit").str.to_uppercase(), pl.lit("NONE"))
    return frame.filter(pl.col("rev") != "7").select(
        pl.col("part").alias("key"),
        pl.concat_str([kg.str.strip_chars_end("0").str.strip_suffix("."), name], separator=" ").alias("value"),
    )


def main(how: str, rows: int, times: int) -> None:
    frame, mapping = records(rows), Mapping([SPEC])
    positions = pl.int_range(rows, eager=True, dtype=pl.Int64)
    hashes = mapping.row_hashes(frame, {})
    seconds, cpu_seconds, entries = [], [], frame
    for _ in range(times):
        started, used = time.monotonic(), time.process_time()
        entries = by_hand(frame) if how == "polars" else mapping.apply(frame, positions, hashes, {}).entries
        seconds.append(time.monotonic() - started)
        cpu_seconds.append(time.process_time() - used)
    checked = int(entries.select(pl.struct("key", "value").hash()).to_series().sum())
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "rows": entries.height, "hash": checked}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
