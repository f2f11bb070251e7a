"""Reading of a sample file: any file, with a source's format, whatever the source holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from connectors.files.file_batches import open_file, read_batches
from connectors.files.notices import NoticeLog
from connectors.filesystem import describe_error
from connectors.formats import Format
from ingestd.sdk import Batch, SourceBroken


def read_sample_file(
    path: Path,
    file_format: Format,
    *,
    notices: NoticeLog,
    find_end: Callable[[BinaryIO], int | None] = lambda _: None,
    name: str = "",
) -> Iterator[Batch]:
    """Yield the whole file. ``find_end`` returns the number of bytes that hold records (None: all).

    ``name``: the name of the file in its source, if it has another one now.

    Raises:
        SourceBroken: there is no such file, or it can't be read in this format.
    """
    try:
        opened = open_file(path, name or path.name)
        with opened.file:
            end = find_end(cast("BinaryIO", opened.file))
            yield from read_batches(opened, opened.sha256(), file_format, notices=notices, end=end)
    except FileNotFoundError:
        raise SourceBroken(f"There is no sample file {path}.") from None
    except OSError as error:
        raise SourceBroken(f"The sample file {path} can't be read: {describe_error(error)}") from error
