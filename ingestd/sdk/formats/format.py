"""The format: settings, and the reading of an open file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from pydantic import BaseModel, ConfigDict

from ingestd.sdk.formats.record_chunk import RecordChunk

if TYPE_CHECKING:
    from ingestd.sdk.formats.parser_process import Parsers

FORMAT_CONTRACT = 1
"""The version of the contract of formats that this runtime has."""


class Format(BaseModel, ABC):
    """A file format as configured.

    A subclass has a field ``type`` with its name, and one field for each setting. Its module imports the library that it needs
    when a file is read, because the class is loaded with the configuration.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    contract: ClassVar[int] = FORMAT_CONTRACT
    """The version of this contract that the format was written for; another one is refused when it is loaded."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """The suffixes of files of this format, in lower case. A folder with this format reads them by default."""

    def check_usable(self) -> None:
        """Check that files of this format can be read here and now; `read` does the same.

        Raises:
            SourceUnavailable: they can't, for example because a library is missing. No file is to blame.
        """

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield at least one chunk. The memory is bounded for any size of the file.

        ``file`` is at its start; ``name`` names it in errors. A format that reads in order calls only ``read``, so that the
        bytes are hashed on the way. Any other format uses ``fileno`` if there is one.

        Raises:
            SourceBroken: the file as a whole is not of this format.
            SourceUnavailable: see `check_usable`.
        """

    def read_sections(self, file: BinaryIO, name: str, known: Mapping[bytes, int]) -> Iterator[RecordChunk]:  # noqa: ARG002
        """Yield what `read` yields, without the records of ``known`` sections; see `ingestd.sdk.ReadsSections`.

        A format that can't compare sections yields everything.
        """
        return self.read(file, name)

    def with_parsers(self, parsers: Parsers) -> Format:  # noqa: ARG002 - most formats are parsed in this process
        """Return the same format; if it is parsed in a child process, by one of ``parsers``."""
        return self
