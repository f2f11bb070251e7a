"""What a converter hands back, and how it says that it can't."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """A file that was made."""

    name: str
    content_type: str
    path: Path


class ConversionRefused(Exception):
    """The file can't be converted, however often it is tried. Its text is a sentence for who uploaded it.

    ``user``: something is wrong with the file. ``unsupported``: it is more, or other, than is converted.
    """

    def __init__(self, error_class: Literal["user", "unsupported"], sentence: str) -> None:
        self.error_class = error_class
        super().__init__(sentence)


class Convert(Protocol):
    """The function ``convert`` of each module here."""

    def __call__(self, source: Path, into: Path) -> list[Produced]:
        """Make files in the folder ``into`` out of ``source``, whose name has the ending of the file's.

        Raises:
            ConversionRefused: it can't be done with this file.
        """


class Outputs:
    """Places in a folder for what is made, and what was made so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.made: list[Produced] = []

    def place(self, name: str, content_type: str) -> Path:
        """Where to write the next one; its name is told apart from others' by a number."""
        path = self._folder / str(len(self.made))
        self.made.append(Produced(name=self._free(name), content_type=content_type, path=path))
        return path

    def _free(self, name: str) -> str:
        taken = {one.name.casefold() for one in self.made}
        stem, dot, ending = name.rpartition(".")
        number = 2
        free = name
        while free.casefold() in taken:
            free = f"{stem}-{number}{dot}{ending}"
            number += 1
        return free
