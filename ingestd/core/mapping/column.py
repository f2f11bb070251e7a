"""The name of a column as a column expression."""

from __future__ import annotations

import re

import polars as pl


def column_named(name: str) -> pl.Expr:
    """Return the column with exactly this name; ``pl.col`` takes ``*`` and ``^…$`` as patterns."""
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if pattern else name)
