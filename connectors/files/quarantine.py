"""The quarantine file: the rejected rows of a file, for a person to correct and drop again.

What was written is read back before it gets its name. If encoding or dialect cannot be detected from these rows, they
are written again in UTF-8 with a byte order mark.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import BinaryIO, cast

import msgspec

from connectors.beneath import Folder, NotRegularFile, RootedPath
from connectors.files.durable_write import Access, NewFile, numbered_names, shorten_name
from connectors.files.quarantine_layout import choose_layout
from connectors.files.rejected_rows import QuarantineSource, RejectedRows, collect_columns
from connectors.files.resubmission import (
    ORIGIN,
    PREAMBLE_FACTS,
    fingerprint,
    has_preamble,
    origin_name,
    parse_origin,
    resubmitted_format,
)
from connectors.formats import Format
from ingestd.sdk import Acknowledgement, SourceBroken


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True):
    """``path`` holds ``rows`` rows; None: there is no such file.

    ``sentence``: what a person should know; empty: nothing. ``missing``: the number of rejected entries without a row in
    the source file as it is now.
    """

    path: RootedPath | None
    rows: int
    missing: int
    sentence: str = ""


def write_quarantine(
    source: QuarantineSource,
    acknowledgement: Acknowledgement,
    folder: RootedPath,
    check: Callable[[RootedPath], None] = lambda _: None,
) -> QuarantineFile:
    """Write the rejected rows of a file into ``folder``. A file with equal content is not written again.

    Their permissions are those of the file, or narrower. ``check`` raises if a file of that name must not be written.

    Raises:
        OSError: the file can't be written.
    """
    first = source.first_chunk()
    layout = choose_layout(source, first)
    columns = collect_columns(first, acknowledgement)
    rows = RejectedRows(source, acknowledgement, columns)
    written = [*columns, PREAMBLE_FACTS] if has_preamble(first) else columns
    name = PurePosixPath(source.name)
    origin = shorten_name(name.with_name(origin_name(name.name) or name.name))
    target = folder / origin.with_name(f"{origin.name}.rejected{layout.suffix}").as_posix()
    check(target)
    status = os.fstat(source.file.fileno())
    key = f"{os.uname().nodename} {status.st_dev} {status.st_ino} {source.sha256} {acknowledgement.run} {target}"
    with target.parent.make_folder() as kept, NewFile(kept, key, Access.from_status(status)) as file:
        file.write(layout.encode(written, rows))
        sentence = layout.sentence
        if rows.count and not _reads_back(file, target.base, source.configured, rows.count):
            file.clear()
            file.write(layout.in_utf8().encode(written, rows))
            sentence = f"{sentence} It is in UTF-8.".strip()
        path = _publish(file, target) if rows.count else None
    return QuarantineFile(path=path, rows=rows.count, missing=rows.missing, sentence=sentence if path else "")


def _publish(file: NewFile, target: RootedPath) -> RootedPath:
    """Give the file its name, and return that.

    An equal file of an attempt before a crash is used instead.
    """
    file.sync()
    content = _digest(os.dup(file.descriptor))
    for candidate in numbered_names(target):
        try:
            file.publish(candidate.base)
        except FileExistsError:
            if _digest_of(file.folder, candidate.base) == content:
                return candidate
            continue
        file.folder.sync()
        return candidate
    raise AssertionError("there is always a next number")


def _digest(descriptor: int) -> str:
    """Return the hash of a file from its start, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(folder: Folder, base: str) -> str | None:
    """Return the hash of a file; None if there is no file of this name."""
    try:
        return _digest(folder.open_file(base))
    except (FileNotFoundError, NotRegularFile):
        return None


def _reads_back(written: NewFile, name: str, configured: str | Format | None, count: int) -> bool:
    """Return True if every row, read as if it were dropped unchanged, is recognised as unchanged."""
    recognised = 0
    try:
        with os.fdopen(os.dup(written.descriptor), "rb") as file:
            file.seek(0)
            for chunk in resubmitted_format(name, configured).read(cast("BinaryIO", file), name):
                if chunk.rejects:
                    return False
                for record in chunk.records.iter_rows(named=True):
                    origin = parse_origin(record.get(ORIGIN))
                    recognised += origin is not None and origin.fingerprint == fingerprint(record)
    except SourceBroken:
        return False
    return recognised == count
