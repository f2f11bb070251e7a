"""The rules `marker` and `sha256`. A companion file shows that a file is complete, or states the hash of its content."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from connectors.directory.readiness.checksums import find_checksum
from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule

_COARSE_SECONDS = 2
"""The tolerance for file times, because some file systems store times with a precision of two seconds."""
_FIELDS = re.compile(r"\{(name|stem)\}")


def _check_template(template: str) -> str:
    if "/" in template:
        raise ValueError("it must have no slash, because it is the name of a file in the same folder")
    if len(_FIELDS.findall(template)) != 1 or "{" in _FIELDS.sub("", template) or "}" in _FIELDS.sub("", template):
        raise ValueError("it must have {name} (run.csv) or {stem} (run) once, and no other field")
    if template in {"{name}", "{stem}"}:
        raise ValueError("it must differ from the file's own name")
    return template


CompanionName = Annotated[str, AfterValidator(_check_template)]
"""The template of a companion's name. ``{name}``: the file's whole name. ``{stem}``: the name without its last suffix."""


def companion_name(template: str, base: str) -> str:
    """Return the name of the companion of the file ``base``."""
    return template.replace("{name}", base).replace("{stem}", PurePosixPath(base).stem)


def is_companion_name(template: str, base: str) -> bool:
    """Return True if ``base`` is the name of a companion of any file."""
    return _compile(template).fullmatch(base) is not None


class CompanionRule(ReadinessRule):
    """A rule that needs one companion for each file."""

    name: CompanionName

    def companions(self, base: str) -> tuple[str, ...]:
        """Return the name of the companion."""
        return (companion_name(self.name, base),)

    def is_companion(self, base: str) -> bool:
        """Return True if ``base`` matches the template of companion names."""
        return is_companion_name(self.name, base)


class Marker(CompanionRule):
    """Another program creates a marker file when this file is complete. The content of the marker does not matter."""

    type: Literal["marker"] = "marker"
    name: CompanionName = Field(
        default="{name}.done",
        description=(
            "The marker's name: {name} is the file's whole name, {stem} the name without its last suffix. A marker that is older"
            " than its file was made for an earlier file and does not count."
        ),
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait for a marker that is not older than the file. If the file's time is in the future, no times are compared."""
        marker = companion_name(self.name, view.base)
        found = view.sibling(marker)
        if found is None:
            return NotReady(sentence=f"it waits for its marker {marker}, which does not exist")
        written = view.identity.mtime_ns
        if found.mtime_ns + _COARSE_SECONDS * 10**9 < written <= view.now * 10**9:
            return NotReady(
                sentence=(
                    f"its marker {marker} is older than the file, so it was made for an earlier file; the file"
                    " waits for a new marker"
                )
            )
        return None


class Sidecar(CompanionRule):
    """The file must have the SHA-256 that a sidecar file states. The sidecar is only a hash, or lines of ``sha256sum``."""

    type: Literal["sha256"] = "sha256"
    name: CompanionName = Field(
        default="{name}.sha256",
        description="The sidecar's name: {name} is the file's whole name, {stem} the name without its last suffix.",
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait for a sidecar with content. The file is invalid if the sidecar has a different hash or no hash for it."""
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


@lru_cache(maxsize=64)
def _compile(template: str) -> re.Pattern[str]:
    before, after = (re.escape(part) for part in _FIELDS.sub("\0", template).split("\0"))
    return re.compile(f"{before}.+{after}", re.DOTALL)
