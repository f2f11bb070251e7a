"""The names of columns: as column expressions, and in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl


def column_named(name: str) -> pl.Expr:
    """Return the column with exactly this name; ``pl.col`` takes ``*`` and ``^…$`` as patterns."""
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if pattern else name)


def listed(names: Iterable[str]) -> str:
    """Return at most twelve names in quotes, and the number of further names."""
    quoted = [f"'{name}'" for name in names]
    shown = ", ".join(quoted[:12])
    return (shown + f" and {len(quoted) - 12} more" if len(quoted) > 12 else shown) or "none"
