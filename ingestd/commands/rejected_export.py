"""Export of rejected records for correction by hand, page by page.

The columns are the columns of the source, followed by ``_reason``, ``_field``, ``_file``, ``_row`` and ``_number``, which
connectors ignore.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

from ingestd.core.errors import IngestdError
from ingestd.daemon.reporting import format_location
from ingestd.mirror.rejections import Rejection, Selection
from ingestd.mirror.sqlite import Observer

ExportFormat: TypeAlias = Literal["csv", "ndjson"]
OpenReader: TypeAlias = Callable[[], AbstractContextManager[Observer]]

NOTES = ("_reason", "_field", "_file", "_row", "_number")
_PAGE = 1_000
_RECORDS = 2_000
"""The number of rejections that are read together with their columns."""


class SeveralTables(IngestdError):
    """The selected records come from several pipelines, and a CSV file has only one header."""


class ColumnAdded(IngestdError):
    """During the export, a record was rejected again with a column that is not in the written header."""


def iter_rejections(reader: Observer, selection: Selection) -> Iterator[Rejection]:
    """Yield the selected rejections that exist now, oldest first. Memory is bounded by one page of rejections."""
    for page in _rejection_pages(lambda: nullcontext(reader), selection, newest=reader.newest()):
        yield from page


def _rejection_pages(open_reader: OpenReader, selection: Selection, *, newest: int) -> Iterator[list[Rejection]]:
    after = 0
    while after < newest:
        with open_reader() as reader:
            page = reader.selected(selection, after=after, limit=_PAGE)
        after = page[-1].id if len(page) == _PAGE else newest
        yield [rejection for rejection in page if rejection.id <= newest]


class RejectionExport:
    """An export of selected rejections as CSV or NDJSON.

    Each page has a separate read transaction. With one transaction for the whole export, a slow receiver would prevent the
    reset of the state file's WAL. The consequences for changes during the export:

    - Rejections that are added are not exported, so the export ends.
    - Rejections that are dropped or corrected before their page is read are not exported.
    - If a record is rejected again under the same number, the export has its state at the time when its page is read.

    ``open_reader`` opens the state file for one page of text; the file is closed between pages. ``written``: the number of
    records that were exported so far. ``without_record``: the number of rejections without a record so far. The mirror keeps no
    record for an entry that the service refused, or for a rejected file.
    """

    def __init__(self, open_reader: OpenReader, selection: Selection, form: ExportFormat) -> None:
        self._open_reader = open_reader
        self._selection = selection
        self._form = form
        self.written = 0
        self.without_record = 0

    def pages(self) -> Iterator[str]:
        """Yield the text in pages, which may be empty. Memory is bounded by the records of a page.

        The CSV header has the columns of all records, so the records are read twice. During the first reading, empty pages are
        yielded so that the caller can do other work between them.

        Raises:
            SeveralTables: the form is csv, and the records come from several pipelines. Only empty pages were yielded.
            ColumnAdded: the form is csv, and the yielded text is incomplete.
        """
        with self._open_reader() as reader:
            newest = reader.newest()
        columns: Collection[str] = ()
        if self._form == "csv":
            columns = yield from self._find_columns(newest)
            if columns:
                yield _csv_lines([[*columns, *NOTES]])
        for page in _rejection_pages(self._open_reader, self._selection, newest=newest):
            records = [rejection for rejection in page if rejection.record]
            self.written += len(records)
            self.without_record += len(page) - len(records)
            if self._form == "csv":
                yield _csv_lines(_csv_row(rejection, columns) for rejection in records)
            else:
                yield "".join(map(_ndjson_line, records))

    def _find_columns(self, newest: int) -> Generator[str, None, Collection[str]]:
        columns: dict[str, None] = {}
        pipelines: dict[str, None] = {}
        after = 0
        with self._open_reader() as reader:
            while (page := reader.records(self._selection, after=after, until=newest, limit=_RECORDS)) is not None:
                after = page.last
                pipelines.update(dict.fromkeys(page.pipelines))
                for record in page.records:
                    if not record.keys() <= columns.keys():
                        columns.update(dict.fromkeys(record))
                yield ""
        if len(pipelines) > 1:
            raise SeveralTables(
                f"The records come from {len(pipelines)} pipelines: {', '.join(pipelines)}. A CSV file has one header. "
                "Choose one pipeline with --pipeline."
            )
        return columns.keys()


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue()


def _csv_row(rejection: Rejection, columns: Collection[str]) -> Iterator[object]:
    if added := rejection.record.keys() - columns:
        raise ColumnAdded(
            f"{format_location(rejection.partition, rejection.position)} was rejected again during the export, with the column "
            f"'{min(added)}', which the header does not have. The export is incomplete: repeat it."
        )
    # CSV can represent a missing field only as an empty field.
    yield from (rejection.record.get(name) or "" for name in columns)
    yield from _notes(rejection).values()


def _ndjson_line(rejection: Rejection) -> str:
    fields = {name: value for name, value in rejection.record.items() if value is not None}
    return json.dumps({**fields, **_notes(rejection)}, ensure_ascii=False) + "\n"


def _notes(rejection: Rejection) -> Mapping[str, Any]:
    row = rejection.position if rejection.position is not None else ""
    return dict(zip(NOTES, (rejection.reason, rejection.field, rejection.partition, row, rejection.id), strict=True))
