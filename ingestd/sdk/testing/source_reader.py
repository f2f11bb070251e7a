"""Functions for the suites: read a source, check a condition, and make an acknowledgement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from ingestd.core.record import Acknowledgement, Batch, Cursor, Partition, Reject, Rejected
from ingestd.sdk.batches import attach_rejects
from ingestd.sdk.connector import Connector

Records: TypeAlias = list[tuple[str, dict[str, str]]]
"""The position of each record, and its fields that are not null, in order."""


def check(condition: object, sentence: str) -> None:
    """Fail with a sentence for the connector's author.

    Raises:
        AssertionError: the condition is false.
    """
    if not condition:
        raise AssertionError(sentence)


def skip(reason: str) -> NoReturn:
    """Skip a test that does not apply to the source."""
    import pytest  # noqa: PLC0415 - the daemon's distribution does not need pytest

    pytest.skip(reason)


def partitions_of(connector: Connector) -> list[Partition]:
    """Return the partitions; fail if there are none."""
    partitions = list(connector.partitions())
    check(partitions, "partitions() returned nothing although the rig's source holds records.")
    return partitions


def read(connector: Connector, partition: Partition, cursor: Cursor | None = None) -> list[Batch]:
    """Return the batches of one complete reading. The cursor passes through JSON, as in the daemon's state file."""
    after = None if cursor is None else json.loads(json.dumps(cursor))
    return list(attach_rejects(connector.read(partition, after)))


def read_next(connector: Connector, partition: Partition, cursor: Cursor | None = None) -> list[Batch]:
    """Return the batches of a later reading. The partitions are listed first, as the daemon does before each reading."""
    list(connector.partitions())
    return read(connector, partition, cursor)


def records_of(batches: Sequence[Batch]) -> Records:
    """Return the records of some batches."""
    return [
        (str(position), {name: value for name, value in row.items() if value is not None})
        for batch in batches
        for position, row in zip(batch.positions, batch.records.iter_rows(named=True), strict=True)
    ]


def rejects_of(batches: Sequence[Batch]) -> list[Reject]:
    """Return the rejected records of some batches."""
    return [reject for batch in batches for reject in batch.rejects]


def acknowledgement(
    *, rejects: Iterable[Rejected] = (), ended: float = 1e9, records: int = 0, facts: Mapping[str, str] | None = None
) -> Acknowledgement:
    """Return the results of a reading with this number of ``records``. Each record except the ``rejects`` created an entry."""
    rejected = tuple(rejects)
    return Acknowledgement(
        run=1, started=ended - 1, ended=ended, pipeline="test", sink="Masses in bench", digest="d", records=records,
        created=records - len(rejected), updated=0, unchanged=0, removed=0, rejected=len(rejected), valueless=0,
        refused=sum(one.subject != "record" for one in rejected), facts=facts or {}, rejects=lambda: iter(rejected),
    )  # fmt: skip
