"""The names of columns: as column expressions, and in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from ingestd.core.phrases import first_names, nearest


def column_named(name: str) -> pl.Expr:
    """Return the column with exactly this name, although ``pl.col`` reads ``*`` and ``^…$`` as patterns."""
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if pattern else name)


def no_column_sentence(name: str, columns: Sequence[str], *, header: bool = True) -> str:
    """Return a sentence about a missing column or field, with the existing names and the most similar name."""
    there = (
        f"There is no column '{name}'; the columns are" if header else f"No record has a field '{name}'; the fields are"
    )
    hint = nearest(name, columns) or f" Check the {'file' if header else 'source'} and the mapping."
    return f"{there} {listed(columns)}.{hint}"


def listed(names: Iterable[str]) -> str:
    """Return at most twelve names in quotes, and the number of further names."""
    return first_names(f"'{name}'" for name in names) or "none"
