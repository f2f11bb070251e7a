"""The format: settings, and the reading of an open file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from pydantic import BaseModel, ConfigDict

from connectors.formats.record_chunk import RecordChunk

if TYPE_CHECKING:
    from connectors.formats.parser_process import Parsers


class Format(BaseModel, ABC):
    """A file format as configured.

    A subclass has a field ``type`` with its name, and one field for each setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    suffixes: ClassVar[tuple[str, ...]]
    """The suffixes of files of this format, in lower case."""

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield at least one chunk. The memory is bounded for any size of the file.

        ``file`` is at its start; ``name`` names it in errors. A format that reads in order calls only ``read``, so that the
        bytes are hashed on the way. Any other format uses ``fileno`` if there is one.

        Raises:
            SourceBroken: the file as a whole is not of this format.
        """

    def with_parsers(self, parsers: Parsers) -> Format:  # noqa: ARG002 - most formats are parsed in this process
        """Return the same format; if it is parsed in a child process, by one of ``parsers``."""
        return self
