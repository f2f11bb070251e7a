"""What every format is: settings that a person can give, and a way from an open file to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from pydantic import BaseModel, ConfigDict

from connectors.formats.record_chunk import RecordChunk

if TYPE_CHECKING:
    from connectors.formats.parser_process import Parsers


class Format(BaseModel, ABC):
    """A file format as configured. A subclass has a field ``type`` with its name, and one field for each setting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suffixes: ClassVar[tuple[str, ...]]
    """The ends of names by which files of this format are known, in lower case."""

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """At least one stretch; in bounded memory whatever the file's size.

        ``file`` stands at its start; ``name`` is the file's, for the sentence of an error. A format that reads in order
        calls ``read`` only, and its bytes are then hashed as they pass; another takes ``fileno`` if there is one.

        Raises:
            SourceBroken: the file as a whole is not of this format.
        """

    def using(self, parsers: Parsers) -> Format:  # noqa: ARG002 - most formats are parsed in this process
        """The same format; if it is parsed in a child process, then by one of ``parsers``."""
        return self
