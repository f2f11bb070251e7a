"""A format of which the parser may take any amount of memory, or end its process: it is parsed in a child process."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from io import UnsupportedOperation
from typing import BinaryIO, ClassVar, Self, cast

import msgspec
from pydantic import PrivateAttr

from connectors.formats.format import Format
from connectors.formats.parser_process.messages import ParseOrder
from connectors.formats.parser_process.pool import DEFAULT, Parsers
from connectors.formats.record_chunk import RecordChunk

_CHUNK_BYTES = 2**20


class IsolatedFormat(Format):
    """Has `parse`, which runs in the child process, instead of `read`."""

    most_bytes: ClassVar[int | None] = None
    """No file that is larger is parsed, so no more is copied of what is unpacked; None: any size."""

    _parsers: Parsers = PrivateAttr(default_factory=lambda: DEFAULT)

    @abstractmethod
    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """As `Format.read`, of a file on disk in which the parser may seek."""

    def using(self, parsers: Parsers) -> Self:
        """The same format, parsed by the processes of a connector."""
        bound = self.model_copy()
        bound._parsers = parsers  # noqa: SLF001 - our own copy
        return bound

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """As `Format.read`; the death of the parser process is a `SourceBroken`."""
        kind = type(self)
        order = ParseOrder(
            module=kind.__module__,
            format=kind.__qualname__,
            settings=msgspec.Raw(self.model_dump_json().encode()),
            file=name,
        )
        with ExitStack() as stack:
            try:
                descriptor = file.fileno()
            except (UnsupportedOperation, AttributeError):
                descriptor = stack.enter_context(_copied(file, self.most_bytes)).fileno()
            yield from self._parsers.parse(order, descriptor)


def _copied(file: BinaryIO, most_bytes: int | None) -> BinaryIO:
    """What is in memory or comes out of a packed file, as a file on disk without a name; one byte more than it may have."""
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
    try:
        left = most_bytes
        while left is None or left >= 0:
            data = file.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left + 1))
            if not data:
                break
            copy.write(data)
            left = None if left is None else left - len(data)
        copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy
