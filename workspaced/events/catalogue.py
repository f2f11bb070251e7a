"""The event types, the patterns by which webhooks subscribe to them, and the schemas of their bodies (contract H6, H8).

This module performs no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.core.json_schema import COUNT, FLAG, OBJECT, STRING, TIMESTAMP, Schema, array, nullable, response

PATTERN_LENGTH: Final = 128
_WELL_FORMED = re.compile(r"[A-Za-z0-9_.*:/-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEventType:
    """An event type. ``scope``: the permission that the owner of a webhook needs on the workspace.

    ``subject``: the name of the schema of ``data.object`` in `_SUBJECTS`.
    """

    name: str
    description: str
    scope: str
    subject: str


def _types() -> Iterable[DomainEventType]:
    kinds = (
        ("data_sink", "A data sink", "data_sinks:read", "dataSink"),
        ("data_sink.entry", "An entry of a data sink", "data_sinks:read", "dataSinkEntry"),
        ("block", "A block", "blocks:read", "block"),
        ("workspace", "A workspace", "workspaces:read", "workspace"),
        ("cloud_storage.file", "A file", "files:read", "file"),
    )
    for prefix, noun, scope, subject in kinds:
        for verb in ("created", "updated", "deleted"):
            yield DomainEventType(
                name=f"{prefix}.{verb}", description=f"{noun} was {verb}.", scope=scope, subject=subject
            )
    yield DomainEventType(
        name="cloud_storage.metadata.updated",
        description="The metadata of a file was replaced.",
        scope="files:read",
        subject="fileMetadata",
    )
    for verb in ("started", "succeeded", "failed"):
        yield DomainEventType(
            name=f"cloud_storage.conversion.{verb}",
            description=f"The conversion of a file {verb}.",
            scope="files:read",
            subject="file",
        )
    yield DomainEventType(
        name="webhook.test", description="A test of this webhook was requested.", scope="", subject="webhookTest"
    )


EVENT_TYPES: Final[Mapping[str, DomainEventType]] = {kind.name: kind for kind in _types()}


def is_well_formed(pattern: str) -> bool:
    """Return whether a subscription may have this pattern. A pattern need not match any event type."""
    return len(pattern) <= PATTERN_LENGTH and _WELL_FORMED.fullmatch(pattern) is not None


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches an event type: ``*``, ``prefix.*``, or the name itself."""
    if pattern == "*":
        return True
    return name.startswith(pattern[:-1]) if pattern.endswith(".*") else pattern == name


def unknown(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns that match no event type of the catalogue."""
    return tuple(pattern for pattern in patterns if not any(matches(pattern, name) for name in EVENT_TYPES))


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
