"""What every format is: settings that a person can give, and a way from an open file to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from pydantic import BaseModel, ConfigDict

from connectors.formats.stretch import Stretch


class Format(BaseModel, ABC):
    """A file format as configured. A subclass has a field ``type`` with its name, and one field for each setting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suffixes: ClassVar[tuple[str, ...]]
    """The ends of names by which files of this format are known, in lower case."""
    jumps: ClassVar[bool] = False
    """Whether it can't be read in order, from the first byte to the last."""

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[Stretch]:
        """At least one stretch; in bounded memory whatever the file's size.

        ``file`` stands at its start; ``name`` is the file's, for the sentence of an error. A format that reads in order
        calls ``read`` only, and its bytes are then hashed as they pass; one that jumps may seek, or take ``fileno``.

        Raises:
            SourceBroken: the file as a whole is not of this format.
        """
