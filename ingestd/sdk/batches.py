"""Functions for batches: make them from single records, mark the last batch, and attach unreadable records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast

import polars as pl

from ingestd.core.errors import RecordUnreadable, SourceBroken
from ingestd.core.record import Batch, Cursor, Position, Reject

T = TypeVar("T")


def pack(
    records: Iterable[T],
    *,
    parse: Callable[[T], Mapping[str, str | None]] | None = None,
    cursor: Cursor,
    positions: Iterable[Position] | None = None,
    facts: Mapping[str, str] | None = None,
    rejects: tuple[Reject, ...] = (),
    last: bool = False,
    header: bool = False,
) -> Batch:
    """Return a batch of ``records``. If a record lacks a field that other records have, the field is null.

    ``parse`` returns the fields of one element of ``records``; without it, the elements are mappings of fields. An element
    for which ``parse`` raises `RecordUnreadable` becomes a reject of the batch. ``positions`` has a position for each element;
    without this argument, positions count from 1.

    Raises:
        TypeError: a value is neither text nor None. The connector must convert numbers to text.
        ValueError: ``positions`` and ``records`` differ in length.
    """
    elements = list(records)
    at = list(positions) if positions is not None else list(range(1, len(elements) + 1))
    rows: list[Mapping[str, str | None]] = []
    readable: list[Position] = []
    unreadable: list[Reject] = []
    for element, position in zip(elements, at, strict=True):
        try:
            row = parse(element) if parse is not None else cast("Mapping[str, str | None]", element)
        except RecordUnreadable as error:
            unreadable.append(_reject(error, position, default={"text": str(element)}))
        else:
            rows.append(row)
            readable.append(position)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, list[str | None]] = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        for value in values:
            if value is not None and not isinstance(value, str):
                raise TypeError(f"The field {name!r} has the value {value!r}; a connector must return text.")
    is_text = bool(at) and isinstance(at[0], str)
    return Batch(
        records=pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)),
        positions=pl.Series("position", readable, dtype=pl.String if is_text else pl.Int64),
        cursor=cursor,
        facts=facts or {},
        rejects=(*rejects, *unreadable),
        last=last,
        header=header,
    )


def mark_last(reading: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the batches of a reading, the last batch with ``last``. Each batch is held until the next batch arrives."""
    held: Batch | None = None
    for batch in reading:
        if held is not None:
            yield held
        held = batch
    if held is not None:
        yield dataclasses.replace(held, last=True)


def attach_rejects(reading: Iterable[Batch | RecordUnreadable]) -> Iterator[Batch]:
    """Yield the batches of a reading, and add unreadable records to the rejects of the batch that follows them.

    Raises:
        SourceBroken: an unreadable record has no position, or no batch follows it.
    """
    unreadable: list[Reject] = []
    for item in reading:
        if isinstance(item, RecordUnreadable):
            if item.position is None:
                raise SourceBroken(f"The connector yielded an unreadable record without its position. {item}")
            unreadable.append(_reject(item, item.position, default={}))
        elif unreadable and not item.unchanged:
            yield dataclasses.replace(item, rejects=(*unreadable, *item.rejects))
            unreadable = []
        else:
            yield item
    if unreadable:
        raise SourceBroken(
            f"The connector yielded no batch after the unreadable record {unreadable[-1].position}, so the daemon has no "
            f"cursor after it. {unreadable[-1].reason}"
        )


def _reject(error: RecordUnreadable, position: Position, *, default: Mapping[str, str | None]) -> Reject:
    return Reject(
        position=error.position if error.position is not None else position,
        reason=str(error),
        field=error.field,
        record=error.record or default,
    )
