"""The quarantine file: the rejected rows of a file, for a person to correct and drop again.

What was written is read back before it gets its name. If encoding or dialect cannot be detected from these rows, they
are written again in UTF-8 with a byte order mark.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import msgspec

from connectors.files.durable_write import (
    existing_names,
    make_folder,
    release,
    reserve,
    shorten_name,
    sync_folder,
    write_hidden,
)
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

    path: Path | None
    rows: int
    missing: int
    sentence: str = ""


def write_quarantine(source: QuarantineSource, acknowledgement: Acknowledgement, folder: Path) -> QuarantineFile:
    """Write the rejected rows of a file into ``folder``. A file with equal content is not written again.

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
    target = folder / origin.with_name(f"{origin.name}.rejected{layout.suffix}")
    make_folder(target.parent)
    hidden = write_hidden(target, layout.encode(written, rows))
    sentence = layout.sentence
    if rows.count and not _reads_back(hidden, target.name, source.configured, rows.count):
        hidden.unlink()
        hidden = write_hidden(target, layout.in_utf8().encode(written, rows))
        sentence = f"{sentence} It is in UTF-8.".strip()
    if not rows.count:
        hidden.unlink()
        return QuarantineFile(path=None, rows=0, missing=rows.missing)
    return QuarantineFile(path=_publish(hidden, target), rows=rows.count, missing=rows.missing, sentence=sentence)


def _publish(hidden: Path, target: Path) -> Path:
    """Rename the hidden file to its name, and return that.

    An equal file of an attempt before a crash is used instead.
    """
    content = _digest(hidden)
    for candidate in existing_names(target):
        if candidate.is_file() and candidate.stat().st_size and _digest(candidate) == content:
            hidden.unlink()
            return candidate
    reserved = reserve(target)
    try:
        hidden.rename(reserved)
    finally:
        release(reserved)
    sync_folder(reserved.parent)
    return reserved


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reads_back(path: Path, name: str, configured: str | Format | None, count: int) -> bool:
    """Return True if every row, read as if it were dropped unchanged, is recognised as unchanged."""
    recognised = 0
    try:
        with path.open("rb") as file:
            for chunk in resubmitted_format(name, configured).read(cast("BinaryIO", file), name):
                if chunk.rejects:
                    return False
                for record in chunk.records.iter_rows(named=True):
                    origin = parse_origin(record.get(ORIGIN))
                    recognised += origin is not None and origin.fingerprint == fingerprint(record)
    except SourceBroken:
        return False
    return recognised == count
