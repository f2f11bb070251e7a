"""JSON Schemas (2020-12) of what is sent, one an event type (contract H6, H8). Pure: tables in, schema out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from workspaced.events.catalogue import EventType

Schema: TypeAlias = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_FLAG: Final[Schema] = {"type": "boolean"}
_NUMBER: Final[Schema] = {"type": "number"}
_OBJECT: Final[Schema] = {"type": "object"}
_STAMP: Final[Schema] = {"type": "string", "format": "date-time"}
_NULL: Final[Schema] = {"type": "null"}
_TEXT_OR_NULL: Final[Schema] = {"anyOf": [_TEXT, _NULL]}

_TRACKED: Final = {"createdAt": _STAMP, "updatedAt": _STAMP, "createdBy": _TEXT, "updatedBy": _TEXT}
_ENTRY: Final[Mapping[str, Schema]] = {
    "id": _TEXT,
    "key": _TEXT,
    "dataSinkId": _TEXT,
    "value": _TEXT_OR_NULL,
    "dataType": _TEXT,
    **_TRACKED,
}
_BLOCK_TEXTS = (
    "id",
    "label",
    "description",
    "parentBlock",
    "previewCustomLink",
    "previewSource",
    "icon",
    "pdmThumbnail",
)
_BLOCK_LISTS = (
    "children",
    "propertyGroups",
    "figures",
    "interfaces",
    "attachments",
    "externalLinks",
    "blockStatuses",
    "type",
)

# The members that every record of the subject has; further ones may come with later versions (contract G22).
_SUBJECTS: Final[Mapping[str, Mapping[str, Schema]]] = {
    "dataSink": {
        "id": _TEXT,
        "workspaceId": _TEXT,
        "label": _TEXT,
        "description": _TEXT_OR_NULL,
        "tags": _TEXT_OR_NULL,
        "icon": {"anyOf": [_OBJECT, _TEXT, _NULL]},
        "visibleId": _TEXT,
        "serial": _NUMBER,
        **_TRACKED,
    },
    "dataSinkEntry": _ENTRY,
    "block": {
        **dict.fromkeys(_BLOCK_TEXTS, _TEXT),
        **dict.fromkeys(_BLOCK_LISTS, _TEXTS),
        "multiplicity": _NUMBER,
        "pdmEnabled": _FLAG,
        "orderIndex": _NUMBER,
        "path": _TEXT,
    },
    "workspace": {"id": _TEXT, "label": _TEXT, "rootBlock": _TEXT, "createdAt": _STAMP, "updatedAt": _STAMP},
    "file": {"id": _TEXT, "workspaceId": _TEXT, "fileName": _TEXT, "contentType": _TEXT, "conversion": _OBJECT},
    "fileMetadata": {"id": _TEXT, "workspaceId": _TEXT, "metadata": _OBJECT},
    "webhookTest": {"webhookId": _TEXT},
}


def schema_of(kind: EventType) -> Schema:
    """The schema of the body that is sent for an event of this type."""
    full = _record(_SUBJECTS[kind.subject])
    shortened = _record({"id": _TEXT} if "id" in _SUBJECTS[kind.subject] else {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.name,
        "description": kind.description,
        **_record(
            {
                "id": {"type": "string", "pattern": "^evt_[0-9a-f]{32}$"},
                "type": {"const": kind.name},
                "timestamp": _STAMP,
                "workspaceId": _TEXT_OR_NULL if kind.scope == "" else _TEXT,
                "clientId": _TEXT_OR_NULL,
                "actor": _TEXT,
                "sequence": {"type": "integer", "minimum": 0},
                "data": {
                    "anyOf": [
                        _record({"object": full, "previous": _OBJECT}),
                        _record({"object": shortened, "previous": _OBJECT, "truncated": {"const": True}}),
                    ]
                },
            }
        ),
    }


def _record(members: Mapping[str, Schema], *, required: Sequence[str] | None = None) -> Schema:
    return {"type": "object", "properties": dict(members), "required": list(required or members)}
