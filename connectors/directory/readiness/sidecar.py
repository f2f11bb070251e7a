"""The rule `sha256`: a sidecar beside a file holds its SHA-256."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.directory.readiness.checksums import find_checksum
from connectors.directory.readiness.name_patterns import CompanionName, companion_name, is_companion_name
from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule


class Sidecar(ReadinessRule):
    """The file's content has the SHA-256 that another file names: a hash alone, or lines of ``sha256sum``."""

    type: Literal["sha256"] = "sha256"
    name: CompanionName = Field(
        default="{name}.sha256",
        description="The sidecar's name: {name} is the file's whole name, {stem} the same without its last suffix.",
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait for a sidecar with content. Another hash, or none for this file, makes the file invalid."""
        sidecar = companion_name(self.name, view.base)
        found = view.sibling(sidecar)
        if found is None:
            return NotReady(sentence=f"it waits for its checksum {sidecar}, which does not exist")
        if not found.size:
            return NotReady(sentence=f"it waits for its checksum: {sidecar} is still empty")
        wanted = find_checksum(view.sibling_text(sidecar), view.base)
        if wanted is None:
            return InvalidFile(
                sentence=f"{view.name}: {sidecar} holds no SHA-256 for it. Write the hash alone, or a line of sha256sum."
            )
        if (actual := view.sha256()) != wanted:
            return InvalidFile(
                sentence=(
                    f"{view.name}: its content has the SHA-256 {actual[:12]}…, {sidecar} says {wanted[:12]}…."
                    " Drop the file again, or correct its checksum."
                )
            )
        return None

    def companions(self, base: str) -> tuple[str, ...]:
        """Return the name of the sidecar."""
        return (companion_name(self.name, base),)

    def is_companion(self, base: str) -> bool:
        """Return True for every name of the sidecar's form."""
        return is_companion_name(self.name, base)
