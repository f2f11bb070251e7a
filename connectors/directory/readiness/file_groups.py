"""Rules that see a whole folder: which files belong together, and are read all or none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule
from connectors.files.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files that belong together, by their paths below the folder, in the order in which they are read.

    ``name`` is for a sentence. ``lacking``: why the group as a whole is not ready; empty: nothing lacks. ``companion``: the
    path of a file that goes where the last of the group goes. ``hashes``: the SHA-256 that a member must have.
    """

    name: str
    members: tuple[str, ...]
    lacking: str = ""
    companion: str = ""
    hashes: Mapping[str, str]

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """A member by itself."""
        wanted = self.hashes.get(look.name)
        if wanted and (is_really := look.sha256()) != wanted:
            return Invalid(
                sentence=(
                    f"{look.name}: its content has the SHA-256 {is_really[:12]}…, {self.name} says {wanted[:12]}…."
                    " Drop the file again, or mend the list."
                )
            )
        return None


class FolderView(Protocol):
    """The whole folder as a grouping rule sees it."""

    @property
    def files(self) -> Mapping[str, Identity]:
        """What the last scan found, by the path below the folder."""

    def matching(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """Regular files of any kind in one sub-folder (empty: the folder itself) whose names match a glob."""

    def text(self, name: str, identity: Identity) -> str:
        """The content of a small text file, read once as long as it stays the same."""


class GroupingRule(ReadinessRule):
    """A rule by which files are read all or none."""

    @abstractmethod
    def groups(self, around: FolderView) -> Iterable[Group]:
        """Every group of which a file is there; no file is in two.

        Raises:
            OSError: what tells the groups can't be read now.
        """

    @abstractmethod
    def alone(self, name: str) -> str:
        """Why a file that is in no group waits."""

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:  # noqa: ARG002 - it judges groups
        """Nothing about a file by itself."""
        return None


def parent_folder(name: str) -> str:
    """The sub-folder of a path below the folder, with its slash; empty for the folder itself."""
    return name[: name.rfind("/") + 1]
