"""What the order of events is kept of: a name for each resource. Pure."""

from __future__ import annotations

_ENTRY = "data_sink.entry/"
_SINK = "data_sink/"


def resource_of(event_type: str, identity: str) -> str:
    """The resource of most events: its kind and its id."""
    return f"{event_type.rpartition('.')[0]}/{identity}"


def entry_resource(sink_id: str, key: str) -> str:
    """The resource of an entry's events: its sink and key, so that one deleted and created again keeps its order."""
    return f"{_ENTRY}{sink_id}/{key}"


def sink_of_entry(resource: str) -> str | None:
    """The resource of the sink that an entry belongs to; None for any other resource."""
    return _SINK + resource[len(_ENTRY) :].partition("/")[0] if resource.startswith(_ENTRY) else None
