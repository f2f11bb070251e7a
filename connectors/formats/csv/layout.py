"""The layout of the rows of a CSV file, beyond its dialect."""

from __future__ import annotations

from typing import Literal

import msgspec

from connectors.formats.column_names import DEFAULT_NAMING, Naming


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where the columns' names come from, and how records with another number of fields are treated.

    ``header_row``: the header's row number; None: it is detected. ``columns``: the names for a file without a header.
    ``units_row``: the row below the header holds the columns' units. ``ragged``: how a record with too few fields is
    treated; see `connectors.formats.csv.Csv`. ``preamble``: the rows above the header are facts.
    """

    header_row: int | None = None
    columns: tuple[str, ...] = ()
    units_row: bool = False
    ragged: Literal["park", "fill"] = "park"
    naming: Naming = DEFAULT_NAMING
    preamble: bool = False


DEFAULT_LAYOUT = Layout()
