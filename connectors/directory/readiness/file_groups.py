"""Groups: files that belong together and are read all or none, and the rules that find them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

import msgspec

from connectors.directory.readiness.rule import (
    ContentCache,
    FileView,
    InvalidFile,
    NotReady,
    ReadinessRule,
    ScannedFolder,
)
from connectors.files.identity import Identity


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Files that belong together, by their paths below the folder, in the order in which they are read.

    ``name`` is for a sentence. ``incomplete``: why the group as a whole is not ready; empty if it is complete. ``companion``: the
    path of a file that is removed with the last file of the group. ``hashes``: the SHA-256 that a member must have.
    """

    name: str
    members: tuple[str, ...]
    incomplete: str = ""
    companion: str = ""
    hashes: Mapping[str, str]

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Compare the hash of one member with the listed one."""
        wanted = self.hashes.get(view.name)
        if wanted and (actual := view.sha256()) != wanted:
            return InvalidFile(
                sentence=(
                    f"{view.name}: its content has the SHA-256 {actual[:12]}…, {self.name} says {wanted[:12]}…."
                    " Drop the file again, or correct the list."
                )
            )
        return None


class GroupingRule(ReadinessRule):
    """A rule by which files are read all or none."""

    @abstractmethod
    def groups(self, files: Mapping[str, Identity], folder: ScannedFolder, cache: ContentCache) -> Iterable[Group]:
        """Yield every group of which a file exists. No file is in two groups. ``files``: those of the last scan, by name.

        Raises:
            OSError: the file that defines the groups can't be read now.
        """

    @abstractmethod
    def ungrouped_reason(self, name: str) -> str:
        """Return why a file without a group waits."""

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:  # noqa: ARG002 - it evaluates groups
        """Return None: the rule says nothing about a single file."""
        return None
