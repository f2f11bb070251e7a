"""A marker file beside a file says that it is complete."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.directory.readiness.name_patterns import CompanionName, companion_name, is_companion_name
from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule

_COARSE_SECONDS = 2
"""The times of some file systems are exact to two seconds."""


class Marker(ReadinessRule):
    """A file of another name appears once this one is complete. What is in it does not matter."""

    type: Literal["marker"] = "marker"
    name: CompanionName = Field(
        default="{name}.done",
        description=(
            "The marker's name: {name} is the file's whole name, {stem} the same without its last end. A marker that is older"
            " than its file was made for an earlier one and does not count."
        ),
    )

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """A file whose time lies in the future can't be older or younger than anything."""
        marker = companion_name(self.name, look.base)
        found = look.beside(marker)
        if found is None:
            return NotReady(sentence=f"it waits for its marker {marker}, which is not there")
        written = look.identity.mtime_ns
        if found.mtime_ns + _COARSE_SECONDS * 10**9 < written <= look.now * 10**9:
            return NotReady(
                sentence=f"its marker {marker} is older than it and was made for an earlier file; it waits for a new one"
            )
        return None

    def companions(self, base: str) -> tuple[str, ...]:
        """The marker."""
        return (companion_name(self.name, base),)

    def is_companion(self, base: str) -> bool:
        """Whatever is called like a marker."""
        return is_companion_name(self.name, base)
