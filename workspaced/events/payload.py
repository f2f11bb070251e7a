"""Domain events, the names of their resources, and the bodies of deliveries (contract H8).

This module performs no I/O: callers pass ids, time and sequence numbers. Events of one resource are delivered in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import msgspec

from workspaced.core.json_body import decode, encode
from workspaced.core.timestamps import stamp

BODY_BYTES: Final = 20_000
"""Standard Webhooks asks for payloads under about 20 kB."""
_ENTRY = "data_sink.entry/"
_SINK = "data_sink/"


class Origin(Protocol):
    """The actor, client and instant of a change; a `Call` is an origin."""

    @property
    def actor(self) -> str:
        """The name of the principal, as in records."""

    @property
    def client_id(self) -> str | None:
        """The id of the client instance, by which the client can recognise events of its own changes (contract A8)."""

    @property
    def now(self) -> int:
        """The instant of the change, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEvent:
    """A change of a resource: the resource's id, and its record after the change or before the deletion.

    ``previous`` has the old values of the members that changed. ``resource`` is the name by which deliveries are ordered; it
    is made of the type and the id by default.
    """

    type: str
    id: str
    record: object
    previous: Mapping[str, object] = field(default_factory=dict)
    resource: str = ""

    def __post_init__(self) -> None:
        if not self.resource:
            object.__setattr__(self, "resource", resource_of(self.type, self.id))


class _Data(msgspec.Struct, omit_defaults=True, rename={"record": "object"}):
    record: object
    previous: object
    truncated: bool = False


class _Body(msgspec.Struct, rename="camel"):
    id: str
    type: str
    timestamp: str
    workspace_id: str | None
    client_id: str | None
    actor: str
    sequence: int
    data: _Data


def body_of(event: DomainEvent, *, event_id: str, origin: Origin, workspace_id: str, sequence: int) -> bytes:
    """Return the body of an event. If it would exceed `BODY_BYTES`, ``data.object`` has only identifying members."""
    body = _Body(
        id=event_id,
        type=event.type,
        timestamp=stamp(origin.now),
        workspace_id=workspace_id or None,
        client_id=origin.client_id,
        actor=origin.actor,
        sequence=sequence,
        data=_Data(record=event.record, previous=event.previous),
    )
    text = encode(body)
    if len(text) <= BODY_BYTES:
        return text
    identity = identifying_members(msgspec.json.decode(encode(event.record)))
    body.data = _Data(record={"id": event.id, **identity}, previous={}, truncated=True)
    return encode(body)


def batch_of(bodies: Sequence[bytes], *, batch_id: str, now: int) -> bytes:
    """Return one body for several events of entries, in their order. A batch has a different schema than a single event."""
    batch = {
        "id": batch_id,
        "type": "data_sink.entry.batch",
        "timestamp": stamp(now),
        "events": [msgspec.Raw(body) for body in bodies],
    }
    return encode(batch)


def with_previous(body: bytes, old: bytes, *, event_id: str) -> bytes:
    """Return ``body`` with the id ``event_id``, and with the ``previous`` values of an earlier body that was not sent.

    So the receiver gets the difference from the last event that it received.
    """
    value = cast("dict[str, Any]", decode(body))  # keeps the digits of numbers
    earlier = cast("dict[str, Any]", decode(old))
    value["id"] = event_id
    if not value["data"].get("truncated"):
        merged = {**value["data"]["previous"], **earlier["data"]["previous"]}
        current = value["data"]["object"]
        value["data"]["previous"] = {name: was for name, was in merged.items() if current.get(name) != was}
    return encode(value)


def identifying_members(record: Mapping[str, object]) -> dict[str, object]:
    """Return the short members of a record that are ids: ``id``, and names that end with ``Id``."""
    return {
        name: value
        for name, value in record.items()
        if (name == "id" or name.endswith("Id")) and isinstance(value, str) and len(value) <= 255
    }


def resource_of(event_type: str, identity: str) -> str:
    """Return the name of a resource that is not an entry: its kind and its id."""
    return f"{event_type.rpartition('.')[0]}/{identity}"


def entry_resource(sink_id: str, key: str) -> str:
    """Return the name of an entry: its sink and key, which stay the same when the entry is created again."""
    return f"{_ENTRY}{sink_id}/{key}"


def sink_of_entry(resource: str) -> str | None:
    """Return the name of an entry's sink; None if the resource is not an entry."""
    return _SINK + resource[len(_ENTRY) :].partition("/")[0] if resource.startswith(_ENTRY) else None
