"""Rejects records with unreadable values in columns that the pipeline uses. Performs no I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Protocol

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch, reject_rows


class UsesColumns(Protocol):
    """A mapping or a group stage, which uses columns of records."""

    def fields_among(self, columns: Sequence[str]) -> Collection[str]:
        """Return the columns among ``columns`` that are used."""


def reject_unreadable(batch: Batch, user: UsesColumns | None) -> Batch:
    """Return the batch with the records that have an unreadable value in a used column moved to its rejects.

    ``user``: the object that uses columns; None: all columns are used.

    Raises:
        SourceBroken: a used column can't be read as a whole.
    """
    if not batch.unreadable:
        return batch
    columns = dict.fromkeys((*batch.records.columns, *(one.name for one in batch.unreadable)))
    used = columns if user is None else user.fields_among(tuple(columns))
    relevant = [one for one in batch.unreadable if one.name in used]
    bad: dict[int, tuple[str, str]] = {}
    for one in relevant:
        if one.rows is None:
            raise SourceBroken(
                f"Column '{one.name}' can't be read: {one.reason}. Correct the file, or map other columns only."
            )
        for row in one.rows:
            bad.setdefault(row, (one.name, f"The value of column '{one.name}' can't be read: {one.reason}."))
    return dataclasses.replace(reject_rows(batch, bad) if bad else batch, unreadable=())
