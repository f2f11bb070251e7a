"""The base classes of formats, with their settings. They read an open file in this process or in a child process."""

from __future__ import annotations

import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from io import UnsupportedOperation
from typing import Any, BinaryIO, ClassVar, Self, cast

import msgspec
from pydantic import BaseModel, ConfigDict, PrivateAttr

from ingestd.core.errors import SourceBroken, SourceUnavailable
from ingestd.sdk.formats.parser_process.messages import ParseOrder
from ingestd.sdk.formats.parser_process.pool import DEFAULT, Parsers
from ingestd.sdk.formats.record_chunk import RecordChunk

FORMAT_CONTRACT = 1
"""The version of the contract of formats that this runtime supports."""

_CHUNK_BYTES = 2**20


class Format(BaseModel, ABC):
    """A file format as configured.

    A subclass has a field ``type`` with its name, and one field for each setting. The class is loaded with the
    configuration, so its module must import a needed library only when a file is read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    contract: ClassVar[int] = FORMAT_CONTRACT
    """The version of this contract that the format was written for. A format with another version is not loaded."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """The suffixes of files of this format, in lower case. By default, a folder reads the files with a suffix of its format."""

    def check_usable(self) -> None:
        """Check that files of this format can be read here and now; `read` performs the same check.

        Raises:
            SourceUnavailable: no file of this format can be read, for example because a library is missing.
        """

    def configured_settings(self) -> dict[str, Any]:
        """Return the type, and the settings that the configuration sets, as JSON values.

        Raises:
            SourceUnavailable: the format can't be loaded, so its settings are unknown.
        """
        name = type(self).model_fields["type"].default
        return {**self.model_dump(mode="json", exclude_unset=True), "type": name}

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield at least one chunk. The memory is bounded for any size of the file.

        ``file`` is at its start; ``name`` names it in errors. A format that reads sequentially must call only ``file.read``,
        which also hashes the bytes. Any other format uses ``file.fileno`` if there is one.

        Raises:
            SourceBroken: the file as a whole is not of this format.
            SourceUnavailable: see `check_usable`.
        """

    def read_sections(self, file: BinaryIO, name: str, known: Mapping[bytes, int]) -> Iterator[RecordChunk]:  # noqa: ARG002
        """Yield what `read` yields. A format with sections omits ``known`` sections; see `ingestd.sdk.ReadsSections`."""
        return self.read(file, name)

    def with_parsers(self, parsers: Parsers) -> Format:  # noqa: ARG002 - most formats are parsed in this process
        """Return the same format. A format that is parsed in a child process then uses the processes of ``parsers``."""
        return self


class IsolatedFormat(Format):
    """A format with `parse` instead of `read`. It runs in a child process, because its parser may crash or exhaust memory."""

    copied_bytes: ClassVar[int] = 256 * 2**20
    """The maximum size of a file that is unpacked into a temporary file, so that the parser can seek in it."""

    needs: ClassVar[Mapping[str, str]] = {}
    """The modules that the parser imports from optional packages, and for each module, what to install."""

    _parsers: Parsers = PrivateAttr(default_factory=lambda: DEFAULT)

    def check_usable(self) -> None:
        """Check that the needed modules are installed, without importing them.

        Raises:
            SourceUnavailable: a module is missing; the sentence names the package to install.
        """
        for module, package in self.needs.items():
            if find_spec(module) is None:
                kind = type(self).model_fields["type"].default
                raise SourceUnavailable(
                    f"The format {kind} needs the package {package}, which is not installed: run pip install '{package}'."
                )

    @abstractmethod
    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the records as `Format.read` does, from a file on disk in which the parser can seek."""

    def with_parsers(self, parsers: Parsers) -> Self:
        """Return the same format, parsed by the processes of ``parsers``."""
        bound = self.model_copy()
        bound._parsers = parsers  # noqa: SLF001 - the copy made here
        return bound

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `Format.read`. Raise `SourceBroken` if the parser process dies."""
        self.check_usable()
        kind = type(self)
        order = ParseOrder(
            module=kind.__module__,
            format=kind.__qualname__,
            paths=tuple(path for path in sys.path if path),
            settings=msgspec.Raw(self.model_dump_json().encode()),
            file=name,
        )
        with ExitStack() as stack:
            try:
                descriptor = file.fileno()
            except (UnsupportedOperation, AttributeError):
                descriptor = stack.enter_context(_copy_to_disk(file, name, self.copied_bytes)).fileno()
            yield from self._parsers.parse(order, descriptor)


def _copy_to_disk(file: BinaryIO, name: str, most: int) -> BinaryIO:
    """Copy an unpacked or in-memory file to an unnamed file on disk.

    Raises:
        SourceBroken: the file is larger than ``most`` bytes. No more than ``most`` bytes are written.
    """
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    try:
        for data in _bounded(file, name, most):
            copy.write(data)
        copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy


def _bounded(file: BinaryIO, name: str, most: int) -> Iterator[bytes]:
    left = most
    while data := file.read(_CHUNK_BYTES):
        left -= len(data)
        if left < 0:
            raise SourceBroken(f"{name} is larger than {most >> 20} MiB once unpacked. Drop it unpacked.")
        yield data
