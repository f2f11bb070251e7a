"""The rule `parts`: files that belong together by their names, such as ``run-{id}_{part}.csv``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from connectors.directory.readiness.file_groups import Group, GroupingRule
from connectors.directory.readiness.rule import ContentCache, ScannedFolder, parent_folder
from connectors.files.identity import Identity

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class Parts(GroupingRule):
    """Files with names that differ only in their part are read all or none, in the order of the parts."""

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
            raise ValueError("name has no slash, names {part} once, and no other field twice")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("parts has a name twice")
        return self

    def groups(
        self,
        files: Mapping[str, Identity],
        folder: ScannedFolder,  # noqa: ARG002 - names decide
        cache: ContentCache,  # noqa: ARG002 - names decide
    ) -> Iterable[Group]:
        """Yield one group for each export of which a part exists."""
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
        """Return the name with its fields filled in, and a NUL in place of the part."""
        return _FIELD.sub(lambda field: "\0" if field[1] == "part" else match[field[1]], self.name)

    def ungrouped_reason(self, name: str) -> str:  # noqa: ARG002 - the same for every file
        """Return that the name has another form.

        A file must not be read as a complete export because of a typing mistake in its name.
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
    # A field ends at the first occurrence of what follows it. The groups forget the others, so the time is linear.
    return re.compile("".join([patterns[0], *(f"(?>{one})" for one in patterns[1:-1]), *patterns[1:][-1:]]), re.DOTALL)
