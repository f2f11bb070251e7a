"""From plain dictionaries to a batch, for connectors whose source hands over one record at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from ingestd.core.record import Batch, Cursor, Position, Reject


def pack(
    records: Iterable[Mapping[str, str | None]],
    *,
    cursor: Cursor,
    positions: Iterable[Position] | None = None,
    facts: Mapping[str, str] | None = None,
    rejects: tuple[Reject, ...] = (),
    last: bool = False,
    header: bool = False,
) -> Batch:
    """A batch of ``records``; a field that a record lacks is null. Positions count from 1 where none are given.

    Raises:
        TypeError: a value is neither text nor None; the connector, not the packing, decides how a number is written.
    """
    rows = list(records)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, list[str | None]] = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        for value in values:
            if value is not None and not isinstance(value, str):
                raise TypeError(
                    f"field {name!r} holds {value!r}; a connector hands over text, exactly as the source has it"
                )
    places = list(positions) if positions is not None else list(range(1, len(rows) + 1))
    text = bool(places) and isinstance(places[0], str)
    return Batch(
        records=pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)),
        positions=pl.Series("position", places, dtype=pl.String if text else pl.Int64),
        cursor=cursor,
        facts=facts or {},
        rejects=rejects,
        last=last,
        header=header,
    )
