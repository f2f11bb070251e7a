"""Export of rejected records to a file for correction by hand.

The columns are those of the source, followed by ``_reason``, ``_field``, ``_file``, ``_row`` and ``_number``, which connectors
ignore. Rejections are read in pages, so memory use is bounded.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TextIO, TypeAlias

from ingestd.core.errors import IngestdError
from ingestd.mirror.rejections import Rejection, RejectionReader, Selection

ExportFormat: TypeAlias = Literal["csv", "ndjson"]

NOTES = ("_reason", "_field", "_file", "_row", "_number")
_PAGE = 1_000


class SeveralTables(IngestdError):
    """The selected records come from several pipelines and do not have the same columns."""


def iter_rejections(reader: RejectionReader, selection: Selection) -> Iterator[Rejection]:
    """Yield the selected rejections, oldest first."""
    after = 0
    while page := reader.selected(selection, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def export_rejections(
    reader: RejectionReader, selection: Selection, form: ExportFormat, file: TextIO
) -> tuple[int, int]:
    """Write the selected records. Return the number written, and the number of rejections without a record.

    The mirror keeps no record for an entry that the service refused, or for a whole file.

    Raises:
        SeveralTables: ``form`` is csv and the records come from several pipelines.
    """
    write = _csv_writer(reader, selection, file) if form == "csv" else _ndjson_writer(file)
    written = without = 0
    for rejection in iter_rejections(reader, selection):
        if rejection.record:
            write(rejection)
            written += 1
        else:
            without += 1
    return written, without


def _csv_writer(reader: RejectionReader, selection: Selection, file: TextIO) -> Callable[[Rejection], None]:
    """Write the header and return a function that writes a row. Finding the columns reads all rejections once."""
    columns: dict[str, None] = {}
    pipelines: dict[str, None] = {}
    for rejection in iter_rejections(reader, selection):
        if rejection.record:
            columns.update(dict.fromkeys(rejection.record))
            pipelines[rejection.pipeline] = None
    if len(pipelines) > 1:
        raise SeveralTables(
            f"The records are of {len(pipelines)} pipelines: {', '.join(pipelines)}. A CSV file has one header. "
            "Choose one pipeline with --pipeline."
        )
    writer = csv.writer(file, lineterminator="\r\n")
    if columns:
        writer.writerow([*columns, *NOTES])

    def write(rejection: Rejection) -> None:
        # CSV has no other representation of a missing field than an empty one.
        writer.writerow([*(rejection.record.get(name) or "" for name in columns), *_notes(rejection).values()])

    return write


def _ndjson_writer(file: TextIO) -> Callable[[Rejection], None]:
    def write(rejection: Rejection) -> None:
        fields = {name: value for name, value in rejection.record.items() if value is not None}
        file.write(json.dumps({**fields, **_notes(rejection)}, ensure_ascii=False) + "\n")

    return write


def _notes(rejection: Rejection) -> Mapping[str, Any]:
    row = rejection.position if rejection.position is not None else ""
    return dict(zip(NOTES, (rejection.reason, rejection.field, rejection.partition, row, rejection.id), strict=True))
