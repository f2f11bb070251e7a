"""How the suite reads a source, and how it compares what came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from ingestd.core.record import Batch, Cursor, Partition
from ingestd.sdk.connector import Connector

Records: TypeAlias = list[tuple[str, dict[str, str]]]
"""Position and present fields of each record, in order."""


def check(condition: object, sentence: str) -> None:
    """Fail with a sentence for the connector's author.

    Raises:
        AssertionError: the condition does not hold.
    """
    if not condition:
        raise AssertionError(sentence)


def skip(reason: str) -> NoReturn:
    """End a test that has nothing to test here."""
    import pytest  # noqa: PLC0415 - the daemon's distribution does not need pytest

    pytest.skip(reason)


def partitions_of(connector: Connector) -> list[Partition]:
    """The partitions, of which there must be some."""
    partitions = list(connector.partitions())
    check(partitions, "partitions() gave nothing although the rig's source holds records.")
    return partitions


def read(connector: Connector, partition: Partition, cursor: Cursor | None = None) -> list[Batch]:
    """One reading to its end, the cursor as it comes out of the daemon's state: through JSON."""
    return list(connector.read(partition, None if cursor is None else json.loads(json.dumps(cursor))))


def records_of(batches: Sequence[Batch]) -> Records:
    """What was handed over."""
    return [
        (str(position), {name: value for name, value in row.items() if value is not None})
        for batch in batches
        for position, row in zip(batch.positions, batch.records.iter_rows(named=True), strict=True)
    ]
