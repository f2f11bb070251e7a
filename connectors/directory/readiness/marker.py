"""The rule `marker`: a marker file beside a file says that the file is complete."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.directory.readiness.name_patterns import CompanionName, companion_name, is_companion_name
from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule

_COARSE_SECONDS = 2
"""The times of some file systems are exact to two seconds."""


class Marker(ReadinessRule):
    """A file of another name appears once this file is complete.

    The content of the marker does not matter.
    """

    type: Literal["marker"] = "marker"
    name: CompanionName = Field(
        default="{name}.done",
        description=(
            "The marker's name: {name} is the file's whole name, {stem} the same without its last suffix. A marker that is older"
            " than its file was made for an earlier file and does not count."
        ),
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait for a marker that is not older than the file.

        The time of a file from the future is not compared.
        """
        marker = companion_name(self.name, view.base)
        found = view.sibling(marker)
        if found is None:
            return NotReady(sentence=f"it waits for its marker {marker}, which does not exist")
        written = view.identity.mtime_ns
        if found.mtime_ns + _COARSE_SECONDS * 10**9 < written <= view.now * 10**9:
            return NotReady(
                sentence=f"its marker {marker} is older than it and was made for an earlier file; it waits for a new one"
            )
        return None

    def companions(self, base: str) -> tuple[str, ...]:
        """Return the name of the marker."""
        return (companion_name(self.name, base),)

    def is_companion(self, base: str) -> bool:
        """Return True for every name of the marker's form."""
        return is_companion_name(self.name, base)
