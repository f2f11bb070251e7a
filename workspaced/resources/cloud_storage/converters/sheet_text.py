"""Converter of a workbook to text: the cells of the first visible sheet that has cells, separated by tabs."""

from __future__ import annotations

import csv
from itertools import dropwhile
from pathlib import Path

from ingestd.workbooks.sheet import read_sheet
from ingestd.workbooks.workbook import WorkbookUnreadable
from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced
from workspaced.resources.cloud_storage.converters.spreadsheets import require_convertible


def convert(source: Path, into: Path) -> list[Produced]:
    """Make ``table.tsv``, and ``sheets.txt`` with the names of all sheets, the converted sheet first; see `Convert`.

    A cell has the text that a pipeline reads. A cell without a value has its reason instead, such as #N/A. So an error never
    replaces a value by the empty text.
    """
    outputs = Outputs(into)
    require_convertible(source)
    try:
        with source.open("rb") as file:
            sheet = read_sheet(file, "The file", None)
    except WorkbookUnreadable as error:
        raise ConversionRefused("user", str(error)) from error
    rows = []
    for number, texts in enumerate(sheet.rows()):
        problems = sheet.details.problems.get(number, {})
        rows.append([problems.get(column, text) for column, text in enumerate(texts)][sheet.left :])
    with outputs.place("table.tsv", "text/tab-separated-values; charset=utf-8").open(
        "w", encoding="utf-8", newline=""
    ) as out:
        csv.writer(out, delimiter="\t", lineterminator="\n").writerows(dropwhile(lambda row: not any(row), rows))
    others = [name for name in sheet.worksheets if name != sheet.name]
    sheets = outputs.place("sheets.txt", "text/plain; charset=utf-8")
    sheets.write_text("\n".join(" ".join(one.split()) for one in (sheet.name, *others)), encoding="utf-8")
    return outputs.made
