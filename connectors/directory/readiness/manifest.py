"""The rule `manifest`: a manifest lists the files of one export."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from connectors.directory.readiness.checksums import parse_checksum_line
from connectors.directory.readiness.file_groups import FolderView, Group, GroupingRule, parent_folder


class Manifest(GroupingRule):
    """A manifest lists files of its folder that are read all or none, in the order of the list.

    Each line names one file, and may have a hash, as `sha256sum` writes it. Lines that begin with # are comments. A file in no
    list waits for one.
    """

    type: Literal["manifest"] = "manifest"
    name: Annotated[str, StringConstraints(min_length=1, pattern="^[^/]+$")] = Field(
        default="*.manifest", description="A glob of the manifests' names, in the folder of the files that they list."
    )

    def groups(self, view: FolderView) -> Iterable[Group]:
        """Yield one group for each manifest. If two manifests list a file, the later manifest counts."""
        claimed: set[str] = set()
        for folder in sorted({parent_folder(name) for name in view.files}):
            found = view.matching(folder, self.name)
            for base in sorted(found, key=lambda base: (-found[base].mtime_ns, base)):
                group = self._group(view, folder, base, view.text(folder + base, found[base]), claimed)
                claimed.update(group.members)
                yield group

    def _group(self, view: FolderView, folder: str, base: str, text: str, claimed: set[str]) -> Group:
        lines = [line.strip() for line in text.lstrip("\ufeff").splitlines()]
        listed = dict(parse_checksum_line(line) for line in lines if line and not line.startswith("#"))
        hashes = {folder + name: sha256 for name, sha256 in listed.items()}
        members = tuple(name for name in hashes if name not in claimed)
        missing = [name for name in members if name not in view.files]
        return Group(
            name=folder + base,
            members=members,
            incomplete=f"{folder}{base} also lists {_some(missing)}, missing or still empty" if missing else "",
            companion=folder + base,
            hashes={name: hashes[name] for name in members if hashes[name]},
        )

    def ungrouped_reason(self, name: str) -> str:  # noqa: ARG002 - the same for every file
        """Return that the file waits for a manifest."""
        return f"it waits for a manifest ({self.name}) that lists it"

    def is_companion(self, base: str) -> bool:
        """Return True for every name that matches the glob of manifests."""
        return fnmatch.fnmatchcase(base, self.name)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
