"""Rejected records as a file that can be mended by hand and dropped back.

The columns are those of the source, followed by ``_reason``, ``_field``, ``_file``, ``_row`` and ``_number``, which no mapping
names and every reading leaves alone. Whatever their number, rejections pass through in pages.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TextIO, TypeAlias

from ingestd.core.errors import IngestdError
from ingestd.mirror.rejections import Rejection, RejectionReader, Selection

Form: TypeAlias = Literal["csv", "ndjson"]

NOTES = ("_reason", "_field", "_file", "_row", "_number")
_PAGE = 1_000


class NotOneTable(IngestdError):
    """The rejections of several pipelines have no columns in common."""


def every(reader: RejectionReader, selection: Selection) -> Iterator[Rejection]:
    """All that is chosen, the oldest first, page by page."""
    after = 0
    while page := reader.selected(selection, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def export(reader: RejectionReader, selection: Selection, form: Form, to: TextIO) -> tuple[int, int]:
    """Write the chosen records; how many, and how many of the chosen have no record to write.

    Of an entry that the service refused, and of a whole file, the mirror does not keep the record: mend those at their
    source.

    Raises:
        NotOneTable: records of several pipelines are chosen and ``form`` is csv; the sentence names them.
    """
    write = _csv(reader, selection, to) if form == "csv" else _ndjson(to)
    written = without = 0
    for rejection in every(reader, selection):
        if rejection.record:
            write(rejection)
            written += 1
        else:
            without += 1
    return written, without


def _csv(reader: RejectionReader, selection: Selection, to: TextIO) -> Callable[[Rejection], None]:
    """Write the header, which takes a look at every record, and give what writes the rows."""
    columns: dict[str, None] = {}
    pipelines: dict[str, None] = {}
    for rejection in every(reader, selection):
        if rejection.record:
            columns.update(dict.fromkeys(rejection.record))
            pipelines[rejection.pipeline] = None
    if len(pipelines) > 1:
        raise NotOneTable(
            f"These are records of {len(pipelines)} pipelines: {', '.join(pipelines)}. One file has one header; "
            "choose one of them with --pipeline."
        )
    writer = csv.writer(to, lineterminator="\r\n")
    if columns:
        writer.writerow([*columns, *NOTES])

    def write(rejection: Rejection) -> None:
        # A field that the record lacks is left empty: CSV has no other word for it.
        writer.writerow([*(rejection.record.get(name) or "" for name in columns), *_notes(rejection).values()])

    return write


def _ndjson(to: TextIO) -> Callable[[Rejection], None]:
    def write(rejection: Rejection) -> None:
        fields = {name: value for name, value in rejection.record.items() if value is not None}
        to.write(json.dumps({**fields, **_notes(rejection)}, ensure_ascii=False) + "\n")

    return write


def _notes(rejection: Rejection) -> Mapping[str, Any]:
    place = rejection.position if rejection.position is not None else ""
    return dict(zip(NOTES, (rejection.reason, rejection.field, rejection.partition, place, rejection.id), strict=True))
