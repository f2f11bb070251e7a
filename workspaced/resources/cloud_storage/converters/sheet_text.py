"""Converter of a workbook to text: the cells of the first visible sheet that has cells, separated by tabs."""

from __future__ import annotations

import csv
from pathlib import Path

from python_calamine import SheetVisibleEnum

from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced
from workspaced.resources.cloud_storage.converters.spreadsheets import open_workbook, rows_of, sheet_names
from workspaced.resources.cloud_storage.converters.tables import cell_text


def convert(source: Path, into: Path) -> list[Produced]:
    """Make ``table.tsv``, and ``sheets.txt`` with the names of all sheets, the converted sheet first; see `Convert`.

    A number is written as the shortest text that converts back to the same binary number, and an error as its text. So an
    error never replaces a value by the empty text.
    """
    outputs = Outputs(into)
    with open_workbook(source, shows_errors=True) as workbook:
        hidden = {sheet.name for sheet in workbook.sheets_metadata if sheet.visible != SheetVisibleEnum.Visible}
        for name in sorted(sheet_names(workbook), key=hidden.__contains__):
            rows = list(rows_of(workbook.get_sheet_by_name(name)))
            if not rows:
                continue
            target = outputs.place("table.tsv", "text/tab-separated-values; charset=utf-8")
            with target.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, delimiter="\t", lineterminator="\n")
                writer.writerows([["" if cell is None else cell_text(cell) for cell in row] for row in rows])
            others = [other for other in sheet_names(workbook) if other != name]
            sheets = outputs.place("sheets.txt", "text/plain; charset=utf-8")
            sheets.write_text("\n".join(" ".join(one.split()) for one in (name, *others)), encoding="utf-8")
            return outputs.made
    raise ConversionRefused("user", "The workbook has no sheet with cells in it.")
