"""The interface of converters: the function `Convert`, its results and its error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

ErrorClass: TypeAlias = Literal["user", "unsupported", "internal", "timeout"]
"""Why a conversion failed. After ``internal`` and ``timeout``, another attempt can succeed without a change of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """A file that a converter made."""

    name: str
    content_type: str
    path: Path


class ConversionRefused(Exception):
    """The file can't be converted, and another attempt would fail, too. The message is a sentence for the user.

    ``user``: the file is malformed. ``unsupported``: the file is too large, or of an unsupported kind.
    """

    def __init__(self, error_class: Literal["user", "unsupported"], sentence: str) -> None:
        self.error_class = error_class
        super().__init__(sentence)


class Convert(Protocol):
    """The function ``convert`` that each converter has."""

    def __call__(self, source: Path, into: Path) -> list[Produced]:
        """Make files in the folder ``into`` from ``source``, which has the ending of the uploaded file's name.

        Raises:
            ConversionRefused: the file can't be converted.
        """


class Outputs:
    """The files that a converter makes in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.made: list[Produced] = []

    def place(self, name: str, content_type: str) -> Path:
        """Return the path for the next file. If another file has the name, a number is added to the name."""
        path = self._folder / str(len(self.made))
        self.made.append(Produced(name=self._unique_name(name), content_type=content_type, path=path))
        return path

    def _unique_name(self, name: str) -> str:
        taken = {one.name.casefold() for one in self.made}
        stem, dot, ending = name.rpartition(".")
        number = 2
        free = name
        while free.casefold() in taken:
            free = f"{stem}-{number}{dot}{ending}"
            number += 1
        return free
