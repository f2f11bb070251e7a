"""The current record of an entry in its source, and the mapping steps from the record to the value. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec
import polars as pl

from ingestd.commands.status import observe
from ingestd.core.contract import Contract, ContractCheck
from ingestd.core.errors import SourceError
from ingestd.core.mapping import AbsentFields, MappingStep, RecordSteps
from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.core.record import Batch, Partition, Position, location_text, position_at
from ingestd.core.unreadable import reject_unreadable
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.parts import open_connector
from ingestd.intake import LookupFiles
from ingestd.intake.partition_digest import partition_digest
from ingestd.intake.run import checked_batches
from ingestd.mirror.reports import EntryOrigin
from ingestd.process.redaction import redact_text
from ingestd.sdk import Connector, Holds, Locates, ReadsCopies
from ingestd.settings.model import PipelineSettings

RecordState: TypeAlias = Literal["same", "changed", "missing", "unreadable"]
"""``same``: the record that produced the value was found. ``changed``: the entry's position now has another record.
``missing``: there is no record. ``unreadable``: the source can't be read now, or this process can't read it."""

_KEYS_SHOWN = 3
_MAPPING_CHANGED = "The mapping, a lookup or the format has changed since the reading:"


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The current record of an entry, and its mapping. `ingestd trace --steps --json` uses the names of the members.

    ``position``: the current position of the record. ``record``: all fields. ``used``: the fields that the mapping uses.
    ``facts``: the facts that the mapping uses. ``value``: the value that the mapping now gives; None if it makes no entry with
    the key. ``sentences``: the differences from the stored value, for people.
    """

    state: RecordState
    position: Position | None = None
    record: Mapping[str, str | None]
    used: tuple[str, ...] = ()
    facts: Mapping[str, str]
    steps: tuple[MappingStep, ...] = ()
    value: str | None = None
    sentences: tuple[str, ...] = ()


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    record: pl.DataFrame
    position: Position
    facts: Mapping[str, str]


class _Search(msgspec.Struct, kw_only=True):
    """The result of a search. ``same``: the record with the entry's row hash. ``at``: the record at the entry's position.

    ``refusal``: why the record at this position is rejected. ``failure``: why the source can't be read.
    """

    same: _Found | None = None
    at: _Found | None = None
    refusal: str = ""
    failure: str = ""
    has_read: bool = False


def read_source_record(configuration: Configuration, origin: EntryOrigin) -> SourceRecord:
    """Read the source of an entry until the entry's record is found, and map this record step by step.

    A daemon may run at the same time. Memory is bounded by the batches of the connector.
    """
    pipeline = next((one for one in configuration.settings.pipelines if one.name == origin.pipeline), None)
    if origin.removed or not origin.run:
        return _without_record("missing", "No record of a source has the value.")
    if pipeline is None:
        return _without_record("unreadable", f"The configuration has no pipeline '{origin.pipeline}' any more.")
    if not pipeline.source.complete:
        sentence = (
            "This process lacks a secret of the source. Run the command as the daemon's user, with its environment."
        )
        return _without_record("unreadable", sentence)
    if pipeline.group is not None:
        return _without_record(
            "unreadable", "The value comes from a group of records; the steps of groups are not shown."
        )
    connector = open_connector(configuration, pipeline)
    try:
        return _read(configuration, pipeline, connector, origin)
    except SourceError as error:
        return _without_record("unreadable", redact_text(str(error)))
    finally:
        connector.close()


def _read(
    configuration: Configuration, pipeline: PipelineSettings, connector: Connector, origin: EntryOrigin
) -> SourceRecord:
    mapping = EntryMapping(pipeline.entries)
    lookups = LookupFiles(mapping.table_sources, base=configuration.base)
    if lookups:
        mapping = mapping.with_tables(lookups.read() or {})
    contract = pipeline.contract.contract() if pipeline.contract is not None else None
    is_alike = origin.digest == partition_digest(mapping, None, contract, connector)
    search = _Searcher(mapping=mapping, contract=contract, origin=origin)
    live = search.find(_live_batches(connector, origin.partition))
    copy = _Search()
    if live.same is None and isinstance(connector, ReadsCopies):
        copy = search.find(checked_batches(connector.read_copy(origin.partition, origin.facts)))
    found = live.same or copy.same or copy.at or live.at
    sentences: list[str] = []
    if live.same is None:
        sentences += _differences(configuration, connector, mapping, origin, live, is_alike=is_alike)
    if found is None:
        state: RecordState = "unreadable" if live.failure else "missing"
        return SourceRecord(state=state, record={}, facts={}, sentences=tuple(sentences))
    made = mapping.steps(found.record, found.facts, origin.key)
    state = "changed" if found is live.at else "same"
    if found is copy.same or found is copy.at:
        sentences.append("The record below is from the copy that the source kept.")
    if state == "same":
        end = _next_delivery(configuration, origin) if found is live.same else ""
        sentences += _unlike(origin, made, f"{_MAPPING_CHANGED} the record now", end)
    if live.same is not None and live.same.position != origin.position:
        sentences.append(f"The record moved to {location_text(live.same.position)}.")
    return SourceRecord(
        state=state,
        position=found.position,
        record=found.record.row(0, named=True),
        used=tuple(made.record) if made is not None else (),
        facts=made.facts if made is not None else {},
        steps=made.steps if made is not None else (),
        value=made.value if made is not None else None,
        sentences=tuple(sentences),
    )


def _live_batches(connector: Connector, name: str) -> Iterator[Batch]:
    """Yield all batches of the partition; none if the source does not have the partition."""
    if isinstance(connector, Holds) and not connector.holds(name):
        return
    partition, has_read = Partition(name=name), False
    for batch in checked_batches(connector.read(partition, None)):
        has_read = True
        yield batch
    if not has_read:
        list(connector.partitions())  # some connectors read only files that their last listing found
        yield from checked_batches(connector.read(partition, None))


class _Searcher(msgspec.Struct, frozen=True, kw_only=True):
    mapping: EntryMapping
    contract: Contract | None
    origin: EntryOrigin

    def find(self, batches: Iterable[Batch]) -> _Search:
        """Search for the entry's record by row hash and by position. Stop when both are found, or if the reading fails."""
        search = _Search()
        check = ContractCheck(self.contract) if self.contract is not None else None
        fields = AbsentFields(self.mapping, whole=True)
        try:
            for batch in batches:
                batch = reject_unreadable(batch, self.mapping)  # noqa: PLW2901 - the same records
                fields.add(batch)
                search.has_read = True
                self._look(check.apply(batch) if check is not None else batch, search)
                if search.same is not None and search.at is not None:
                    break
        except SourceError as error:
            search.failure = redact_text(str(error))
        return search

    def _look(self, batch: Batch, search: _Search) -> None:
        location = str(self.origin.position)
        for reject in batch.rejects:
            if str(reject.position) == location:
                search.refusal = reject.reason
        if batch.records.height:
            is_same = (
                self.mapping.row_hashes(batch.records, batch.facts).reinterpret(signed=True) == self.origin.row_hash
            )
            is_at = batch.positions.cast(pl.String) == location
            search.at = search.at or _first(batch, is_at)
            search.same = _first(batch, is_same & is_at) or search.same or _first(batch, is_same)


def _first(batch: Batch, mask: pl.Series) -> _Found | None:
    index = mask.arg_max() if mask.any() else None
    if index is None:
        return None
    return _Found(
        record=batch.records[index : index + 1], position=position_at(batch.positions, index), facts=batch.facts
    )


def _differences(
    configuration: Configuration,
    connector: Connector,
    mapping: EntryMapping,
    origin: EntryOrigin,
    live: _Search,
    *,
    is_alike: bool,
) -> Iterator[str]:
    """Yield sentences on what the source now has instead of the entry's record.

    ``is_alike``: the entry was made with the current mapping and format.
    """
    if live.failure:
        yield live.failure
        return
    if not live.has_read:
        yield f"{origin.partition} is no longer in its source: {_location(configuration, connector, origin)}."
        return
    if live.refusal:
        yield f"The record at its position is now rejected: {live.refusal}"
        return
    if live.at is None:
        yield f"{origin.partition} has no such record any more: {_location(configuration, connector, origin)}."
        return
    made = mapping.steps(live.at.record, live.at.facts, origin.key)
    if made is not None:
        begin = "The record has changed: it now" if is_alike else f"{_MAPPING_CHANGED} the record at its position now"
        yield from _unlike(origin, made, begin, _next_delivery(configuration, origin))
        return
    nothing = pl.Series([0], dtype=pl.Int64)
    others = mapping.apply(live.at.record, nothing, nothing, live.at.facts).entries["key"].unique(maintain_order=True)
    names = ", ".join(f"'{key}'" for key in others[:_KEYS_SHOWN]) + (
        " and others" if others.len() > _KEYS_SHOWN else ""
    )
    yield f"The record at its position now makes {names if others.len() else 'no entry'}, not '{origin.key}'."


def _unlike(origin: EntryOrigin, made: RecordSteps | None, begin: str, end: str = "") -> Iterator[str]:
    """Yield a sentence if the mapped record differs from the stored value."""
    if made is not None and (made.value, made.data_type) == (origin.value, origin.data_type):
        return
    if made is not None and made.refusal:
        yield f"{begin} is rejected. {made.refusal}"
    elif made is None or made.value is None:
        yield f"{begin} makes no entry '{origin.key}'."
    else:
        yield f"{begin} gives {made.value} ({made.data_type}).{end}"


def _next_delivery(configuration: Configuration, origin: EntryOrigin) -> str:
    with observe(configuration) as mirror:
        for held in mirror.held_runs():
            if (held.pipeline, held.partition) == (origin.pipeline, origin.partition) and held.state == "held":
                return f" Run {held.run} is held; 'ingestd approve {held.run}' delivers it."
    return " The next reading delivers it."


def _location(configuration: Configuration, connector: Connector, origin: EntryOrigin) -> str:
    """Return what happened to the partition, as a clause that follows a colon."""
    with observe(configuration) as mirror:
        history = mirror.history(origin.pipeline, origin.partition)
    if history is None or history.cursor is None or not isinstance(connector, Locates):
        return "its source has changed"
    return connector.describe_location(origin.partition, history.cursor)


def _without_record(state: RecordState, sentence: str) -> SourceRecord:
    return SourceRecord(state=state, record={}, facts={}, sentences=(sentence,))
