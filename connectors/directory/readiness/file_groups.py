"""Groups of files: all files of a group are read, or none. The rules `manifest` and `parts` define groups."""

from __future__ import annotations

import fnmatch
import re
from abc import abstractmethod
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache, partial
from typing import Annotated, Literal, Self

import msgspec
from pydantic import Field, StringConstraints, model_validator

from connectors.directory.readiness.checksums import parse_checksum_line
from connectors.directory.readiness.rule import (
    ContentCache,
    FileView,
    InvalidFile,
    NotReady,
    ReadinessRule,
    ScannedFolder,
    parent_folder,
)
from connectors.files.identity import Identity
from ingestd.sdk import first_names

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Files that belong together. ``members``: their paths below the folder, in the order of reading.

    ``name``: the name in messages. ``incomplete``: why no file of the group is ready; empty if no file is missing.
    ``companion``: the path of a file that is removed with the group's last file. ``hashes``: the required SHA-256 by member.
    """

    name: str
    members: tuple[str, ...]
    incomplete: str = ""
    companion: str = ""
    hashes: Mapping[str, str]

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Compare the hash of one member with the required hash."""
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
    """A rule that defines groups of files: all files of a group are read, or none."""

    @abstractmethod
    def groups(self, files: Mapping[str, Identity], folder: ScannedFolder, cache: ContentCache) -> Iterable[Group]:
        """Yield every group that has at least one of ``files`` (the last scan, by name). No file is in two groups.

        Raises:
            OSError: the file that defines the groups can't be read now.
        """

    @abstractmethod
    def ungrouped_reason(self, name: str) -> str:
        """Return why a file without a group waits."""

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:  # noqa: ARG002 - the rule evaluates groups
        """Return None, because `Group.evaluate` replaces this method."""
        return None


class Manifest(GroupingRule):
    """A manifest lists files of its folder, which are read together or not at all, in the order of the list.

    Each line names one file, and may have a hash, as `sha256sum` writes it. Lines that begin with # are comments. A file that
    no manifest names waits for a manifest.
    """

    type: Literal["manifest"] = "manifest"
    name: Annotated[str, StringConstraints(min_length=1, pattern="^[^/]+$")] = Field(
        default="*.manifest", description="A glob of the manifests' names, in the folder of the files that they list."
    )

    def groups(self, files: Mapping[str, Identity], folder: ScannedFolder, cache: ContentCache) -> Iterable[Group]:
        """Yield one group for each manifest. If two manifests list the same file, it belongs to the newer manifest."""
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
        """Return the reason: the file waits for a manifest that lists it."""
        return f"it waits for a manifest ({self.name}) that lists it"

    def is_companion(self, base: str) -> bool:
        """Return True if ``base`` matches the glob of manifests."""
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
        incomplete=f"{name} also lists {first_names(missing, 3)}: missing or still empty" if missing else "",
        companion=name,
        hashes={member: hashes[member] for member in members if hashes[member]},
    )


class Parts(GroupingRule):
    """Files with names that differ only in ``{part}`` are read together or not at all, in the order of ``parts``."""

    type: Literal["parts"] = "parts"
    name: str = Field(
        description=(
            "The form of the files' names, such as run-{id}_{part}.csv: {part} names the part, every other {field} the export."
            " A file with another name waits."
        )
    )
    parts: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=2, description="The parts of a complete export, in the order in which they are read."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        fields = _FIELD.findall(self.name)
        if "/" in self.name or fields.count("part") != 1 or len(fields) != len(set(fields)):
            raise ValueError("name must have no slash, {part} exactly once, and no other field twice")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("parts must not have a name twice")
        return self

    def groups(
        self,
        files: Mapping[str, Identity],
        folder: ScannedFolder,  # noqa: ARG002 - the names are sufficient
        cache: ContentCache,  # noqa: ARG002 - the names are sufficient
    ) -> Iterable[Group]:
        """Yield one group for each export with at least one existing part."""
        pattern = _compile(self.name, tuple(self.parts))
        found: set[str] = set()
        for name in files:
            parent = parent_folder(name)
            if match := pattern.fullmatch(name[len(parent) :]):
                found.add(parent + self._export(match))
        for export in sorted(found):
            members = tuple(export.replace("\0", part) for part in self.parts)
            missing = [name for name in members if name not in files]
            yield Group(
                name=export.replace("\0", "*"),
                members=members,
                incomplete=f"it is read together with {', '.join(missing)}, missing or still empty" if missing else "",
                hashes={},
            )

    def _export(self, match: re.Match[str]) -> str:
        """Return the template with the values of its fields, and a NUL in place of the part."""
        return _FIELD.sub(lambda field: "\0" if field[1] == "part" else match[field[1]], self.name)

    def ungrouped_reason(self, name: str) -> str:  # noqa: ARG002 - the same for every file
        """Return the reason: the file's name does not have the form of a part's name.

        The file waits. Otherwise a file with a mistyped name would be read alone, as a complete export.
        """
        parts = ", ".join(self.parts)
        return f"its name does not have the form of the rule parts ({self.name} with one of {parts}); rename it"


@lru_cache(maxsize=64)
def _compile(name: str, parts: tuple[str, ...]) -> re.Pattern[str]:
    pieces = _FIELD.split(name)
    choices = "|".join(map(re.escape, sorted(parts, key=len, reverse=True)))
    patterns = [re.escape(pieces[0])]
    for field, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if field == "part":
            patterns[-1] += f"(?P<part>{choices}){re.escape(text)}"
        else:
            patterns.append(f"(?P<{field}>.+?){re.escape(text)}")
    # A field ends at the first occurrence of the text that follows it. The regex groups are atomic, so the time is linear.
    return re.compile("".join([patterns[0], *(f"(?>{one})" for one in patterns[1:-1]), *patterns[1:][-1:]]), re.DOTALL)
