"""The registry of readiness rules by name. A new rule must be added here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from connectors.directory.readiness.companion import Marker, Sidecar
from connectors.directory.readiness.complete import Complete
from connectors.directory.readiness.file_groups import Manifest, Parts
from connectors.directory.readiness.not_open import NotOpen
from connectors.directory.readiness.rule import ReadinessRule
from connectors.directory.readiness.trailer import Trailer

RuleName: TypeAlias = Literal["marker", "sha256", "not-open", "complete", "trailer", "manifest"]
ConfiguredRule: TypeAlias = Annotated[
    Marker | Sidecar | NotOpen | Complete | Trailer | Manifest | Parts, Field(discriminator="type")
]

_BY_NAME: dict[str, Callable[[], ReadinessRule]] = {
    str(kind.model_fields["type"].default): kind for kind in (Marker, Sidecar, NotOpen, Complete, Trailer, Manifest)
}


def configure_rule(configured: RuleName | ReadinessRule) -> ReadinessRule:
    """Return the configured rule. If only a name is configured, the rule has its default settings."""
    return configured if isinstance(configured, ReadinessRule) else _BY_NAME[configured]()
