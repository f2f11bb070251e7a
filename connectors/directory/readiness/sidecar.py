"""A sidecar beside a file holds its SHA-256."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.directory.readiness.checksums import find_checksum
from connectors.directory.readiness.name_patterns import CompanionName, companion_name, is_companion_name
from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule


class Sidecar(ReadinessRule):
    """The file's content has the SHA-256 that a file beside it names: a hash alone, or lines of ``sha256sum``."""

    type: Literal["sha256"] = "sha256"
    name: CompanionName = Field(
        default="{name}.sha256",
        description="The sidecar's name: {name} is the file's whole name, {stem} the same without its last end.",
    )

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """A sidecar that is still empty is waited for; one that says another hash parks the file."""
        sidecar = companion_name(self.name, look.base)
        found = look.beside(sidecar)
        if found is None:
            return NotReady(sentence=f"it waits for its checksum {sidecar}, which is not there")
        if not found.size:
            return NotReady(sentence=f"it waits for its checksum: {sidecar} is still empty")
        wanted = find_checksum(look.text_beside(sidecar), look.base)
        if wanted is None:
            return Invalid(
                sentence=f"{look.name}: {sidecar} holds no SHA-256 for it. Write the hash alone, or a line of sha256sum."
            )
        if (is_really := look.sha256()) != wanted:
            return Invalid(
                sentence=(
                    f"{look.name}: its content has the SHA-256 {is_really[:12]}…, {sidecar} says {wanted[:12]}…."
                    " Drop the file again, or mend its checksum."
                )
            )
        return None

    def companions(self, base: str) -> tuple[str, ...]:
        """The sidecar."""
        return (companion_name(self.name, base),)

    def is_companion(self, base: str) -> bool:
        """Whatever is called like a sidecar."""
        return is_companion_name(self.name, base)
