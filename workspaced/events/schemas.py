"""JSON Schemas (2020-12) of the bodies of events, one for each event type (contract H6, H8). Pure."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import COUNT, FLAG, OBJECT, STRING, TIMESTAMP, Schema, array, nullable, response
from workspaced.events.catalogue import DomainEventType

_NUMBER: Final[Schema] = {"type": "number"}
_STRING_OR_NULL: Final = nullable(STRING)

_TRACKED: Final = {"createdAt": TIMESTAMP, "updatedAt": TIMESTAMP, "createdBy": STRING, "updatedBy": STRING}
_BLOCK_STRINGS: Final = [
    "id",
    "label",
    "description",
    "parentBlock",
    "previewCustomLink",
    "previewSource",
    "icon",
    "pdmThumbnail",
    "path",
]
_BLOCK_LISTS: Final = (
    *("children", "propertyGroups", "figures", "interfaces"),
    *("attachments", "externalLinks", "blockStatuses", "type"),
)
_IN_WORKSPACE: Final = {"id": STRING, "workspaceId": STRING}

# The members that every record of a subject has. Later versions may add members (contract G22).
_SUBJECTS: Final[dict[str, dict[str, Schema]]] = {
    "dataSink": {
        **_IN_WORKSPACE,
        "label": STRING,
        "description": _STRING_OR_NULL,
        "tags": _STRING_OR_NULL,
        "icon": {"anyOf": [OBJECT, STRING, {"type": "null"}]},
        "visibleId": STRING,
        "serial": _NUMBER,
        **_TRACKED,
    },
    "dataSinkEntry": {
        **dict.fromkeys(("id", "key", "dataSinkId", "dataType"), STRING),
        "value": _STRING_OR_NULL,
        **_TRACKED,
    },
    "block": {
        **dict.fromkeys(_BLOCK_STRINGS, STRING),
        **dict.fromkeys(_BLOCK_LISTS, array(STRING)),
        **dict.fromkeys(("multiplicity", "orderIndex"), _NUMBER),
        "pdmEnabled": FLAG,
    },
    "workspace": {
        **dict.fromkeys(("id", "label", "rootBlock"), STRING),
        **dict.fromkeys(("createdAt", "updatedAt"), TIMESTAMP),
    },
    "file": {**_IN_WORKSPACE, "fileName": STRING, "contentType": STRING, "conversion": OBJECT},
    "fileMetadata": {**_IN_WORKSPACE, "metadata": OBJECT},
    "webhookTest": {"webhookId": STRING},
}


def schema_of(kind: DomainEventType) -> Schema:
    """Return the schema of the body that is sent for an event of this type."""
    members = _SUBJECTS[kind.subject]
    whole = {"object": response(members), "previous": OBJECT}
    identity = {"object": response({"id": STRING} if "id" in members else {}), "previous": OBJECT}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.name,
        "description": kind.description,
        **response(
            {
                "id": {"type": "string", "pattern": "^evt_[0-9a-f]{32}$"},
                "type": {"const": kind.name},
                "timestamp": TIMESTAMP,
                "workspaceId": _STRING_OR_NULL if kind.scope == "" else STRING,
                "clientId": _STRING_OR_NULL,
                "actor": STRING,
                "sequence": COUNT,
                "data": {"anyOf": [response(whole), response({**identity, "truncated": {"const": True}})]},
            }
        ),
    }
