"""Format settings for the layout of a table, from the options of the command or the decisions of a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ingestd.commands.initial_configuration.file_sample import Decisions
from ingestd.commands.initial_configuration.sample import FormatSettings, batches_of_file
from ingestd.commands.initial_configuration.table_layout import Row, TableLayout, find_layout
from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.unit import UnitError, unit_conversion


def decide_layout(path: Path, rows: Sequence[Row], decisions: Decisions) -> TableLayout | None:
    """Return the layout of the table in ``rows``; None if there is no table.

    Raises:
        SourceBroken: the row that was named as the header does not exist.
    """
    given = decisions.given("--header-row")
    layout = find_layout(rows, is_unit, header_row=None if given is None else int(given))
    if layout is None and given is not None:
        raise SourceBroken(f"{path.name} has no row {given} with cells, which --header-row names.")
    if layout is not None and "--header-row" in layout.doubts:
        proposal = layout.header_row
        row = decisions.decide("--header-row", layout.doubts["--header-row"], str(proposal))
        if row != str(proposal):
            layout = find_layout(rows, is_unit, header_row=int(row)) if row.isdecimal() else None
        if layout is None:
            raise SourceBroken(f"{path.name} has no row {row} with cells, so it can't be the header (--header-row).")
    if layout is not None and ("--units-row" in layout.doubts or decisions.given("--units-row") is not None):
        doubt = layout.doubts.get("--units-row", "")
        chosen = decisions.decide("--units-row", doubt, "yes", choices=("yes", "no"))
        layout = msgspec.structs.replace(layout, units_row=chosen == "yes")
    return layout


def is_unit(text: str) -> bool:
    """Return True for the name of a unit."""
    try:
        unit_conversion(text, text)
    except UnitError:
        return False
    return True


def header_settings(layout: TableLayout) -> dict[str, object]:
    """Return the settings of a header that CSV and workbooks have in common."""
    settings: dict[str, object] = {}
    if layout.header_rows > 1:
        settings["header_rows"] = layout.header_rows
    if layout.units_row:
        settings["units_row"] = True
    if layout.repeats_names:
        settings["repeated_columns"] = "number"
    return settings


def preamble_settings(path: Path, settings: FormatSettings) -> dict[str, object]:
    """Return the setting ``preamble`` if the rows above the header have facts."""
    facts = next(batches_of_file(path, {**settings, "preamble": True})).facts
    return {"preamble": True} if any(name.startswith("file.preamble.") for name in facts) else {}
