"""Reading of a sample file: any file, with a source's format, whatever the source holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from connectors.beneath import RootedPath
from connectors.files.file_batches import OpenFile, open_file, read_batches
from connectors.files.notices import NoticeLog
from connectors.filesystem import describe_error, real_path
from connectors.formats import Format
from ingestd.sdk import Batch, SourceBroken

FindEnd = Callable[[BinaryIO], int | None]
"""Returns the number of bytes that hold records; None: all."""


def read_sample_file(
    path: Path, file_format: Format, *, notices: NoticeLog, find_end: FindEnd = lambda _: None
) -> Iterator[Batch]:
    """Yield the whole file that a person named; a link is followed.

    Raises:
        SourceBroken: there is no such file, or it can't be read in this format.
    """
    real = real_path(path)
    try:
        opened = open_file(RootedPath(real.parent, real.name), path.name)
        yield from read_open_file(opened, file_format, notices=notices, find_end=find_end)
    except FileNotFoundError:
        raise SourceBroken(f"There is no sample file {path}.") from None
    except OSError as error:
        raise SourceBroken(f"The sample file {path} can't be read: {describe_error(error)}") from error


def read_open_file(
    opened: OpenFile, file_format: Format, *, notices: NoticeLog, find_end: FindEnd = lambda _: None
) -> Iterator[Batch]:
    """Yield the whole of an open file, and close it."""
    with opened.file:
        end = find_end(cast("BinaryIO", opened.file))
        yield from read_batches(opened, opened.sha256(), file_format, notices=notices, end=end)
