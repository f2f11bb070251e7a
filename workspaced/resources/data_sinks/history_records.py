"""Records of the history of entries, the body that changes its settings, and the instants of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.bodies import Body
from workspaced.core.json_schema import Count, Timestamp, Uuid
from workspaced.core.members import Whole
from workspaced.core.problems import Invalid
from workspaced.core.records import optional_stamp
from workspaced.core.timestamps import microseconds, stamp
from workspaced.resources.data_sinks.history_store import Moments, StoredChange, StoredDifference, policy_of
from workspaced.resources.data_sinks.origins import StoredOrigins
from workspaced.resources.data_sinks.records import EntryOriginRecord, origin_record
from workspaced.resources.data_sinks.values import StoredSink
from workspaced.settings.model import MOST_CHANGES, MOST_DAYS, HistorySettings

Effect: TypeAlias = Literal["added", "removed", "changed", "unknown"]


class EntryStateRecord(msgspec.Struct, rename="camel"):
    """The value of an entry at an instant."""

    value: str | None
    data_type: str
    origin: Annotated[
        EntryOriginRecord | UnsetType | None,
        Meta(description="With `origin=true`: the origin of its last write; null: not given."),
    ] = UNSET


class DataSinkHistoryRecord(msgspec.Struct, rename="camel"):
    """How much of the history of a sink is kept."""

    data_sink_id: Uuid
    changes: Annotated[
        Count, Meta(description="The number of changes that are kept of each entry; 0: the sink has no history.")
    ]
    days: Count
    own_changes: Annotated[Count | None, Meta(description="The sink's setting; null: the default of the service.")]
    own_days: Count | None
    known_from: Annotated[Timestamp | None, Meta(description="Every later change is known; null: no change is known.")]


class EntryChangeRecord(msgspec.Struct, rename="camel", kw_only=True):
    """A change of an entry, with the request. `before` or `after` is null if the key had no entry at that time."""

    id: str
    time: Timestamp
    effect: Literal["added", "removed", "changed"]
    before: EntryStateRecord | None
    after: EntryStateRecord | None
    principal: str
    key_id: str | None
    client_id: str | None
    request_id: str | None
    operation: str
    older_dropped: Annotated[bool, Meta(description="Older changes of this entry were dropped.")]


class EntryDifferenceRecord(msgspec.Struct, rename="camel"):
    """A key that differs between two instants; ``unknown`` if one of the values was dropped."""

    key: str
    effect: Effect
    before: EntryStateRecord | None
    after: EntryStateRecord | None


class DataSinkComparisonRecord(msgspec.Struct, rename="camel", kw_only=True):
    """The differences between two instants."""

    since: Annotated[Timestamp, msgspec.Meta(description="The earlier instant.")]
    until: Timestamp
    known_from: Timestamp | None
    is_known: Annotated[bool, Meta(description="false: the sink's history begins after `since`; nothing is compared.")]
    differences: list[EntryDifferenceRecord]
    unknown_keys: Annotated[
        list[str],
        Meta(description="On the first page: keys that may differ; their changes between the instants were dropped."),
    ]


def history_record(sink: StoredSink, default: HistorySettings) -> DataSinkHistoryRecord:
    """Return how much of a sink's history is kept."""
    policy = policy_of(sink, default)
    known_from = sink.history_from if policy.changes else None
    return DataSinkHistoryRecord(
        sink.id, policy.changes, policy.days, sink.history_changes, sink.history_days, optional_stamp(known_from)
    )


def change_records(
    changes: Sequence[StoredChange], after: EntryStateRecord | None, origins: StoredOrigins | None
) -> list[EntryChangeRecord]:
    """Return the records of changes of one entry, the newest first. ``after``: the value after the newest change.

    ``origins`` None: omit the origins of the values.
    """
    records = []
    for change in changes:
        before = state_record(change.old_value, change.old_data_type, change.old_origin, origins)
        records.append(
            EntryChangeRecord(
                id=str(change.number),
                time=stamp(change.at),
                effect="added" if before is None else "removed" if after is None else "changed",
                before=before,
                after=after,
                principal=change.actor,
                key_id=change.key_id or None,
                client_id=change.client_id or None,
                request_id=change.request_id or None,
                operation=change.operation,
                older_dropped=change.known_from is not None,
            )
        )
        after = before
    return records


def difference_record(found: StoredDifference, moments: Moments) -> EntryDifferenceRecord:
    """Return the record of a difference; an unknown value is null."""
    before = state_record(found.old_value, found.old_data_type)
    after = state_record(found.new_value, found.new_data_type)
    no_before = found.old_from is not None and found.old_from > moments.since
    no_after = found.new_from is not None and found.new_from > moments.until
    effect: Effect = "added" if before is None else "removed" if after is None else "changed"
    return EntryDifferenceRecord(
        found.key,
        "unknown" if no_before or no_after else effect,
        None if no_before else before,
        None if no_after else after,
    )


def state_record(
    value: str | None, data_type: str | None, origin: int | None = None, origins: StoredOrigins | None = None
) -> EntryStateRecord | None:
    """Return the record of a value; None if there is no data type: the key had no entry. ``origins``: see `change_records`."""
    if data_type is None:
        return None
    return EntryStateRecord(value, data_type, UNSET if origins is None else origin_record(origin, origins))


class DataSinkHistoryChanges(Body):
    """An update body of the settings of a history; null: the default of the service."""

    is_update = True

    changes: Annotated[
        int | None, Whole(highest=MOST_CHANGES, description="How many changes of each entry are kept; 0: no history.")
    ] = None
    days: Annotated[int | None, Whole(highest=MOST_DAYS, description="For how many days a change is kept.")] = None


def read_moments(query: Mapping[str, str], *, now: int) -> Moments:
    """Return the instants ``from`` and ``to`` of a comparison; the default of ``to`` is now.

    Raises:
        Invalid: an instant is not a date-time with an offset, or ``from`` is not before ``to``.
    """
    since = _instant(query, "from")
    until = min(_instant(query, "to"), now) if "to" in query else now
    if since >= until:
        raise Invalid("bad_from", "from must be before to, and in the past.")
    return Moments(since=since, until=until)


def _instant(query: Mapping[str, str], name: str) -> int:
    try:
        return microseconds(query.get(name, "")) // 1_000
    except ValueError as error:
        raise Invalid(f"bad_{name}", f"{name} must be an RFC 3339 date-time with an offset.") from error
