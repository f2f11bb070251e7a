"""The rule `manifest`: a manifest lists the files of one export."""

from __future__ import annotations

import fnmatch
from collections.abc import Container, Iterable, Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from connectors.directory.readiness.checksums import parse_checksum_line
from connectors.directory.readiness.file_groups import Group, GroupingRule
from connectors.directory.readiness.rule import ContentCache, ScannedFolder, parent_folder
from connectors.files.identity import Identity


class Manifest(GroupingRule):
    """A manifest lists files of its folder that are read all or none, in the order of the list.

    Each line names one file, and may have a hash, as `sha256sum` writes it. Lines that begin with # are comments. A file in no
    list waits for one.
    """

    type: Literal["manifest"] = "manifest"
    name: Annotated[str, StringConstraints(min_length=1, pattern="^[^/]+$")] = Field(
        default="*.manifest", description="A glob of the manifests' names, in the folder of the files that they list."
    )

    def groups(self, files: Mapping[str, Identity], folder: ScannedFolder, cache: ContentCache) -> Iterable[Group]:
        """Yield one group for each manifest. If two manifests list a file, the later manifest counts."""
        claimed: set[str] = set()
        for parent in sorted({parent_folder(name) for name in files}):
            found = folder.companions(parent, self.name)
            for base in sorted(found, key=lambda base: (-found[base].mtime_ns, base)):
                name = parent + base
                text = cache.get(name, found[base], "text", partial(folder.text, name))
                group = _read_manifest(name, text, files, claimed)
                claimed.update(group.members)
                yield group

    def ungrouped_reason(self, name: str) -> str:  # noqa: ARG002 - the same for every file
        """Return that the file waits for a manifest."""
        return f"it waits for a manifest ({self.name}) that lists it"

    def is_companion(self, base: str) -> bool:
        """Return True for every name that matches the glob of manifests."""
        return fnmatch.fnmatchcase(base, self.name)


def _read_manifest(name: str, text: str, files: Container[str], claimed: Container[str]) -> Group:
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines()]
    listed = dict(parse_checksum_line(line) for line in lines if line and not line.startswith("#"))
    hashes = {parent_folder(name) + base: sha256 for base, sha256 in listed.items()}
    members = tuple(member for member in hashes if member not in claimed)
    missing = [member for member in members if member not in files]
    return Group(
        name=name,
        members=members,
        incomplete=f"{name} also lists {_some(missing)}, missing or still empty" if missing else "",
        companion=name,
        hashes={member: hashes[member] for member in members if hashes[member]},
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
