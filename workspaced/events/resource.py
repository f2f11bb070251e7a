"""Names of resources. Events of one resource are delivered in their order. Pure."""

from __future__ import annotations

_ENTRY = "data_sink.entry/"
_SINK = "data_sink/"


def resource_of(event_type: str, identity: str) -> str:
    """Return the name of the resource of an event, except of an entry: its kind and its id."""
    return f"{event_type.rpartition('.')[0]}/{identity}"


def entry_resource(sink_id: str, key: str) -> str:
    """Return the name of an entry: its sink and key, which an entry keeps when it is created again."""
    return f"{_ENTRY}{sink_id}/{key}"


def sink_of_entry(resource: str) -> str | None:
    """Return the name of an entry's sink; None if the resource is not an entry."""
    return _SINK + resource[len(_ENTRY) :].partition("/")[0] if resource.startswith(_ENTRY) else None
