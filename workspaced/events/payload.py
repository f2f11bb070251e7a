"""The body of a delivery (contract H8). Pure: identity, time and sequence are handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import msgspec

from workspaced.core.json_body import decode, encode
from workspaced.core.timestamps import stamp
from workspaced.events.resource import resource_of

BODY_BYTES: Final = 20_000
"""Standard Webhooks asks for payloads under about 20 kB."""


class Origin(Protocol):
    """Who caused an event, from where and when (milliseconds since 1970); a `Call` is one."""

    @property
    def actor(self) -> str:
        """The name that records carry."""

    @property
    def client_id(self) -> str | None:
        """The originating client instance, so that it can tell its own echo (contract A8)."""

    @property
    def now(self) -> int:
        """When."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEvent:
    """Something that happened. ``id`` is that of the resource; ``record`` it after (for a deletion: before).

    ``previous`` has the former values of the members that changed. ``resource`` is what the order is kept of where the id
    does not say it: an entry keeps its place in a sink, its key, when it is deleted and created again.
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
    """The bytes to send; over `BODY_BYTES` the object is reduced to what identifies it."""
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
    identity = identifying(msgspec.json.decode(encode(event.record)))
    body.data = _Data(record={"id": event.id, **identity}, previous={}, truncated=True)
    return encode(body)


def batch_of(bodies: Sequence[bytes], *, batch_id: str, now: int) -> bytes:
    """One body for several events of entries, each as it would be sent alone, in their order."""
    batch = {
        "id": batch_id,
        "type": "data_sink.entry.batch",
        "timestamp": stamp(now),
        "events": [msgspec.Raw(body) for body in bodies],
    }
    return encode(batch)


def with_previous(body: bytes, former: bytes, *, event_id: str) -> bytes:
    """``body`` as another event that also has the former values of an earlier, never sent body of the same resource.

    So the receiver sees the difference to what it received last.
    """
    value = cast("dict[str, Any]", decode(body))  # keeps the digits of numbers
    earlier = cast("dict[str, Any]", decode(former))
    value["id"] = event_id
    if not value["data"].get("truncated"):
        merged = {**value["data"]["previous"], **earlier["data"]["previous"]}
        current = value["data"]["object"]
        value["data"]["previous"] = {name: was for name, was in merged.items() if current.get(name) != was}
    return encode(value)


def identifying(record: Mapping[str, object]) -> dict[str, object]:
    """Of a record's members those that say which one it is: ``id`` and what ends with ``Id``, where short."""
    return {
        name: value
        for name, value in record.items()
        if (name == "id" or name.endswith("Id")) and isinstance(value, str) and len(value) <= 255
    }
