"""Rows of a data frame as a JSON array of objects, for a request and for a statement with many rows."""

from __future__ import annotations

import polars as pl


def json_rows(frame: pl.DataFrame) -> str:
    """Return the rows of a frame, one object each, with the names of its columns."""
    # polars 2.1 writes `[]` for a frame that has rows but an empty first chunk, as a filter leaves it.
    return frame.rechunk().write_json()
