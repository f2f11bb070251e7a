"""The event types, and the patterns by which webhooks subscribe to them (contract H6). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

PATTERN_LENGTH: Final = 128
_WELL_FORMED = re.compile(r"[A-Za-z0-9_.*:/-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEventType:
    """An event type. ``scope``: the permission that the owner of a webhook needs on the workspace.

    ``subject``: the name of the schema of ``data.object`` in `workspaced.events.schemas`.
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
    """Whether a subscription may have this pattern, which need not match any event type."""
    return len(pattern) <= PATTERN_LENGTH and _WELL_FORMED.fullmatch(pattern) is not None


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches an event type: ``*``, ``prefix.*``, or the name itself."""
    if pattern == "*":
        return True
    return name.startswith(pattern[:-1]) if pattern.endswith(".*") else pattern == name


def unknown(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns that match no event type of the catalogue."""
    return tuple(pattern for pattern in patterns if not any(matches(pattern, name) for name in EVENT_TYPES))
