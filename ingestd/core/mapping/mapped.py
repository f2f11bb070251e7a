"""The result of a mapping: entries and rejects."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TypeAlias

import msgspec
import polars as pl

from ingestd.core.mapping.absent_fields import ChildField
from ingestd.core.record import Position, Reject

RejectedRow: TypeAlias = tuple[int, Position, str, str]
"""The `ORDER` of a record; the position of the record or its child; the reason; the field."""


class Mapped(msgspec.Struct, frozen=True, kw_only=True):
    """Mapped records.

    ``entries``: key, value, data_type (String), row_hash (UInt64), position, in the order of the records. With a dead-band
    also deadband (String). ``rejects``: the rejected records, each with its row hash. ``child_fields``: for each field in
    lists, whether an item has it. ``valueless``: the number of records without an entry that are not rejected.
    """

    entries: pl.DataFrame
    rejects: tuple[tuple[Reject, int], ...]
    child_fields: Mapping[ChildField, bool] = msgspec.field(default_factory=dict)
    valueless: int = 0


class PreparedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The row hashes and the result of the mapping of a whole batch."""

    hashes: pl.Series
    mapped: Mapped


class NamedEntries(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that rejected records name; these entries keep their former values.

    ``entries``: as in `Mapped`, but each value is null. ``is_complete``: the keys of all rejected records are known.
    """

    entries: pl.DataFrame
    is_complete: bool


def divide(mapped: Mapped, positions: Iterable[pl.Series]) -> Iterator[Mapped]:
    """Yield the result of each batch, from the result of batches that were mapped together.

    ``mapped``: its positions are row numbers across all batches. ``positions``: the positions of each batch.
    """
    entries, rejects = mapped.entries, mapped.rejects
    of_entries = entries["position"].to_list()
    of_rejects = [int(reject.position) for reject, _ in rejects]
    start = 0
    for known in positions:
        at, end = known.to_list(), start + known.len()
        first, last = bisect_left(of_entries, start), bisect_left(of_entries, end)
        found = pl.Series("position", [at[row - start] for row in of_entries[first:last]], dtype=known.dtype)
        some = range(bisect_left(of_rejects, start), bisect_left(of_rejects, end))
        yield Mapped(
            entries=entries[first:last].replace_column(entries.width - 1, found),
            valueless=end - start - len({*of_entries[first:last], *(of_rejects[one] for one in some)}),
            rejects=tuple(
                (dataclasses.replace(rejects[one][0], position=at[of_rejects[one] - start]), rejects[one][1])
                for one in some
            ),
        )
        start = end


def rejects_of(found: Iterable[RejectedRow], records: pl.DataFrame, hashes: pl.Series) -> Iterator[tuple[Reject, int]]:
    """Yield rejects in the order of the records. Only the first reject of a record has its fields, which may be large."""
    last = -1
    for order, position, reason, field in sorted(found, key=itemgetter(0)):
        record = records.row(order, named=True) if order != last else {}
        last = order
        yield Reject(position=position, reason=reason, field=field, record=record), int(hashes[order])
