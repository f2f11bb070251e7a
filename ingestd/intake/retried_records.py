"""Maps retried records that the source does not yield again, from the text that is stored with their rejections."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ingestd.core.mapping import AbsentFields, Mapped, Mapping
from ingestd.core.record import Batch, record_position
from ingestd.mirror.port import RetriedRecord
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore

_RECORDS = 500
"""Maximum number of records in one transaction."""


def map_retried(mirror: IntakeStore, partition: int, mapping: Mapping) -> None:
    """Map the retried records of an incremental partition that are still rejected, in the order of their readings.

    Raises:
        MirrorError: the state file failed; records that were mapped before stay mapped.
    """
    while records := mirror.retried_records(partition, limit=_RECORDS):
        positions = pl.Series("position", [record_position(one.position) for one in records])
        if records[0].entry is not None:
            entries = _entries(mapping, records, positions)
            mirror.map_retried(partition, records, entries=entries, rejects=())
        elif not records[0].is_readable:
            mirror.map_retried(partition, records, entries=mapping.empty_entries(positions.dtype), rejects=())
        else:
            mapped = _map(mapping, [one for one in records if one.record], positions.dtype)
            mirror.map_retried(partition, records, entries=mapped.entries, rejects=mapped.rejects)


def _map(mapping: Mapping, records: Sequence[RetriedRecord], kind: pl.DataType) -> Mapped:
    """Return what the stored fields of records produce; ``kind``: the type of their positions."""
    names = dict.fromkeys(name for one in records for name in one.record)
    columns = {name: [one.record.get(name) for one in records] for name in names}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
    positions = pl.Series("position", [record_position(one.position) for one in records], dtype=kind)
    facts = records[0].facts if records else {}
    hashes = mapping.row_hashes(frame, facts)
    fields = AbsentFields(mapping, whole=False)
    absent = fields.add(Batch(records=frame, positions=positions, cursor={}, facts=facts))
    if absent is None:
        mapped = mapping.apply(frame, positions, hashes, facts)
        absent = fields.add_children(mapped.child_fields, is_whole=True, last=True)
        if absent is None:
            return mapped
    return mapping.reject_all(frame, positions, hashes, absent)


def _entries(mapping: Mapping, records: Sequence[RetriedRecord], positions: pl.Series) -> pl.DataFrame:
    """Return the stored entries of ``records``, which were rejected because another pipeline had written their keys."""
    columns = {"key": 0, "value": 1, "data_type": 2}
    texts = {
        name: pl.Series([one.entry[at] for one in records if one.entry is not None], dtype=pl.String)
        for name, at in columns.items()
    }
    hashes = pl.Series("row_hash", [0] * len(records), dtype=pl.UInt64)
    found = pl.DataFrame({**texts, "row_hash": hashes, "position": positions})
    return pl.concat([mapping.empty_entries(positions.dtype), found], how="diagonal")
