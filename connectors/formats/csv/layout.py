"""What a person can say about the rows of a CSV file beyond its dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from connectors.formats.column_names import DEFAULT_NAMING, Naming


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the columns' names come from, and what becomes of what does not fit them.

    ``header_row``: the header's row number (None: the first row that can be one). ``columns``: names for a file without
    header. ``units_row``: the row below the header gives the columns' units. ``ragged``: what becomes of a record with
    fewer fields than columns.
    """

    header_row: int | None = None
    columns: tuple[str, ...] = ()
    units_row: bool = False
    ragged: Literal["park", "fill"] = "park"
    naming: Naming = DEFAULT_NAMING


DEFAULT_LAYOUT = Layout()
