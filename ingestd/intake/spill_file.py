"""A temporary file of data frames in numbered parts, for data that a reading can't keep in memory.

The file is in the folder of the state file and has no name, so it does not remain after a crash.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl

from ingestd.core.errors import MirrorFull


class SpillFile:
    """Frames with equal columns, in ``parts`` parts. ``content``: the plural noun for the content in error sentences.

    The file is created by the first `append`. Close it at the end of the reading.
    """

    def __init__(self, folder: Path, *, parts: int, content: str) -> None:
        self._folder = folder
        self._content = content
        self._file: BinaryIO | None = None
        self._chunks: list[list[tuple[int, int]]] = [[] for _ in range(parts)]

    @property
    def exists(self) -> bool:
        """Whether a frame was appended."""
        return self._file is not None

    def append(self, part: int, frame: pl.DataFrame) -> None:
        """Append a frame to a part.

        Raises:
            MirrorFull: the file can't be written.
        """
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it stays open
            start = self._file.seek(0, io.SEEK_END)
            frame.write_ipc_stream(self._file, compression="lz4")
            self._chunks[part].append((start, self._file.tell() - start))
        except OSError as error:
            raise MirrorFull(
                f"The {self._content} can't be written to a temporary file in {self._folder}: {error.strerror or error}. "
                "Is the disk full?"
            ) from error

    def frames(self, part: int) -> Iterator[pl.DataFrame]:
        """Yield the frames of a part in the order in which they were appended."""
        return (self.frame(part, number) for number in range(len(self._chunks[part])))

    def frame(self, part: int, number: int) -> pl.DataFrame:
        """Return a frame of a part by its number, from 0.

        Raises:
            LookupError: there is no such frame.
        """
        start, size = self._chunks[part][number]
        if self._file is None:
            raise LookupError("the file is closed")
        self._file.seek(start)
        return pl.read_ipc_stream(io.BytesIO(self._file.read(size)))

    def clear(self) -> None:
        """Remove all frames, and free their space."""
        if self._file is not None:
            self._file.truncate(0)
            self._chunks = [[] for _ in self._chunks]

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
