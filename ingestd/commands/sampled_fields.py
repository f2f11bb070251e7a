"""The comparison, for `ingestd check`, of a mapping's fields with the fields of current files and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from ingestd.core.errors import SourceBroken, SourceError
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import AbsentFields, Mapping
from ingestd.core.phrases import counted, named
from ingestd.core.record import Batch, Partition
from ingestd.core.unreadable import reject_unreadable
from ingestd.intake.run import checked_batches
from ingestd.process.redaction import redact_text
from ingestd.sdk import Connector, ReadsSamples, Step

_FILES = 3
_RECORDS = 10_000
"""The maximum number of files, and of records in each file, that are read."""
_SECONDS = 5.0
"""How long to wait for files that may still change."""


def check_fields(
    connector: Connector, steps: Iterable[Step], mapping: Mapping, groups: Aggregation | None
) -> Iterator[Step]:
    """Yield the ``steps`` of a connector's check, and then a step on whether a sample has the fields that the mapping names.

    A step with ``fields`` is a sample. Without such a step, the first files of the source are read if no step failed.
    """
    outcomes, has_sample = set[str](), False
    for step in steps:
        yield step
        outcomes.add(step.outcome)
        if step.fields:
            has_sample = True
            absent = (groups or mapping).absent_among(step.fields, dict.fromkeys((groups or mapping).facts, ""))
            sentence = (groups or mapping).absent_sentence(absent[0], step.fields, header=True) if absent else ""
            yield _step(sentence, "The source")
    if outcomes and "failed" not in outcomes and not has_sample and isinstance(connector, ReadsSamples):
        for partition in _partitions(connector):
            yield from _check_partition(connector, partition, mapping, groups)


def _partitions(connector: Connector) -> Sequence[Partition]:
    """Return at most `_FILES` partitions. Wait up to `_SECONDS` for files that are not stable yet."""
    until = connector.context.elapsed() + _SECONDS
    while True:
        found = list(itertools.islice(connector.partitions(), _FILES))
        wait = connector.waiting()
        if len(found) == _FILES or wait is None or connector.context.elapsed() + wait > until:
            return found
        connector.context.stopping.wait(wait)


def _check_partition(
    connector: Connector, partition: Partition, mapping: Mapping, groups: Aggregation | None
) -> Iterator[Step]:
    fields = AbsentFields(groups or mapping, whole=partition.snapshot)
    sentence, records = "", 0
    try:
        with closing(checked_batches(connector.read(partition, None))) as batches:
            for batch in batches:
                records += batch.record_count
                sentence = _absent(reject_unreadable(batch, groups or mapping), fields, None if groups else mapping)
                if sentence or records >= _RECORDS or (records and not fields.is_undecided):
                    break
    except SourceError as error:
        yield Step(name="fields", outcome="skipped", sentence=redact_text(named(partition.name, str(error))))
        return
    if fields.is_undecided and not sentence:
        sentence = f"The first {counted(records, 'record')} lack a field that the mapping names."
    if records:
        yield _step(named(partition.name, sentence) if sentence else "", partition.name)


def _absent(batch: Batch, fields: AbsentFields, mapping: Mapping | None) -> str:
    """Return the sentence about an absent field, or "" if no field is known to be absent.

    ``mapping``: the mapping of the records; None if the pipeline groups its records.
    """
    try:
        absent = fields.add(batch)
        if mapping is not None and absent is None and batch.records.height:
            hashes = mapping.row_hashes(batch.records, batch.facts)
            found = mapping.apply(batch.records, batch.positions, hashes, batch.facts).child_fields
            absent = fields.add_children(found, is_whole=True, last=batch.last)
    except SourceBroken as error:
        return str(error)
    return absent.sentence if absent is not None else ""


def _step(sentence: str, what: str) -> Step:
    if sentence:
        return Step(name="fields", outcome="failed", sentence=sentence)
    return Step(name="fields", outcome="passed", sentence=f"{what} has the fields that the mapping names.")
