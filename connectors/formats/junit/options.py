"""The options of JUnit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import RecordChunk


class JUnit(Format):
    """A report of tests in XML; each test case, at any depth of suites, is a record."""

    suffixes: ClassVar[tuple[str, ...]] = ()

    type: Literal["junit"] = "junit"

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.junit.reader.read_junit`."""
        from connectors.formats.junit.reader import read_junit  # noqa: PLC0415 - imported for a file that is read

        return read_junit(file, name)
