"""Files that belong together by their names: ``run-{id}_{part}.csv`` with the parts that make a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from connectors.directory.readiness.file_groups import FolderView, Group, GroupingRule, parent_folder

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class Parts(GroupingRule):
    """Files whose names differ in their part alone are read all or none, in the order of the parts."""

    type: Literal["parts"] = "parts"
    name: str = Field(
        description=(
            "How the files are called, such as run-{id}_{part}.csv: {part} tells the part, every other {field} the export. A"
            " file that is not called so waits."
        )
    )
    parts: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=2, description="The parts that make a whole, in the order in which they are read."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        fields = _FIELD.findall(self.name)
        if "/" in self.name or fields.count("part") != 1 or len(fields) != len(set(fields)):
            raise ValueError("name has no slash, names {part} once, and no other field twice")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("parts names a part twice")
        return self

    def groups(self, around: FolderView) -> Iterable[Group]:
        """One for each export of which a part is there."""
        pattern = _compiled(self.name, tuple(self.parts))
        found: set[str] = set()
        for name in around.files:
            folder = parent_folder(name)
            fits = pattern.fullmatch(name[len(folder) :])
            if fits:
                found.add(folder + self._shape(fits))
        for shape in sorted(found):
            members = tuple(shape.replace("\0", part) for part in self.parts)
            missing = [name for name in members if name not in around.files]
            yield Group(
                name=shape.replace("\0", "*"),
                members=members,
                lacking=""
                if not missing
                else f"it is read together with {', '.join(missing)}, not there or still empty",
                hashes={},
            )

    def _shape(self, fits: re.Match[str]) -> str:
        """The name with its fields, but for the part."""
        return _FIELD.sub(lambda field: "\0" if field[1] == "part" else fits[field[1]], self.name)

    def alone(self, name: str) -> str:  # noqa: ARG002 - the same for every file
        """A name with a mistake would else be read as if it were whole."""
        return f"it is not called as the rule parts says ({self.name} with one of {', '.join(self.parts)}); rename it"


@lru_cache(maxsize=64)
def _compiled(name: str, parts: tuple[str, ...]) -> re.Pattern[str]:
    pieces = _FIELD.split(name)
    choices = "|".join(map(re.escape, sorted(parts, key=len, reverse=True)))
    shaped = [
        re.escape(piece) if number % 2 == 0 else f"(?P<{piece}>{choices if piece == 'part' else '.+?'})"
        for number, piece in enumerate(pieces)
    ]
    return re.compile("".join(shaped), re.DOTALL)
