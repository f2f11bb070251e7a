"""CSV and TSV: a Parquet file and a preview in JSON, in bounded memory however long the file is."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced
from workspaced.resources.cloud_storage.converters.tables import PARQUET, column_names, letters, typed, write_preview

COLUMNS: Final = 2_000
_DELIMITERS = ",;\t|"
_SAMPLE_BYTES = 65_536
_PART_BYTES = 1_048_576
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def convert(source: Path, into: Path) -> list[Produced]:
    """As the protocol says."""
    text, encoding = _as_utf8(source, into)
    sample = _sample(text)
    if not sample:
        raise ConversionRefused("user", "The file is empty.")
    delimiter = "\t" if source.suffix == ".tsv" else _delimiter(sample[0])
    first, *others = (row for row in csv.reader(sample, delimiter=delimiter) if row)
    names, has_header = column_names(first, more=bool(others))
    if len(names) > COLUMNS:
        raise ConversionRefused("unsupported", f"The table has {len(names)} columns; up to {COLUMNS} are converted.")
    outputs = Outputs(into)
    parquet = outputs.place("table.parquet", PARQUET)
    try:
        table = pl.scan_csv(
            text,
            glob=False,
            separator=delimiter,
            has_header=has_header,
            infer_schema=False,
            new_columns=None if has_header else letters(len(first)),
            low_memory=True,
        )
        typed(table).sink_parquet(parquet)
        write_preview(parquet, outputs, "preview.json", header=has_header, delimiter=delimiter, encoding=encoding)
    except (pl.exceptions.ComputeError, pl.exceptions.ShapeError, pl.exceptions.DuplicateError) as error:
        reason = str(error).partition("\n")[0][:200].rstrip(".")
        raise ConversionRefused("user", f"The file can't be read as a table: {reason}.") from error
    return outputs.made


def _as_utf8(source: Path, into: Path) -> tuple[Path, str]:
    """The same text in UTF-8, and what it was in: UTF-16 by its mark, else UTF-8 where it is that, else Windows-1252.

    Raises:
        ConversionRefused: it is none of them, or no text.
    """
    with source.open("rb") as file:
        mark = file.read(2)
    for encoding in ("utf-16",) if mark in _UTF16 else ("utf-8", "windows-1252"):
        target = None if encoding == "utf-8" else into / "utf-8.csv"
        try:
            _recode(source, encoding, target)
        except UnicodeDecodeError:
            continue
        return target or source, encoding
    raise ConversionRefused("user", "The file is text in neither UTF-8, UTF-16 nor Windows-1252.")


def _recode(source: Path, encoding: str, target: Path | None) -> None:
    """Decode it all; write it in UTF-8 where a target is given."""
    with source.open("rb") as file:
        decoded = codecs.getincrementaldecoder(encoding)()
        if target is None:
            for part in _parts(file.read):
                _require_text(decoded.decode(part))
            decoded.decode(b"", final=True)
            return
        with target.open("w", encoding="utf-8", newline="") as out:
            for part in _parts(file.read):
                out.write(_require_text(decoded.decode(part)))
            out.write(decoded.decode(b"", final=True))


def _parts(read: object) -> Iterator[bytes]:
    while callable(read) and (part := read(_PART_BYTES)):
        yield part


def _require_text(text: str) -> str:
    if "\0" in text:
        raise ConversionRefused("user", "The file is no text: it holds bytes that are zero.")
    return text


def _sample(text: Path) -> list[str]:
    """The first lines, whole ones only unless there is but one."""
    with text.open(encoding="utf-8-sig", newline="") as file:
        lines = file.read(_SAMPLE_BYTES).splitlines(keepends=True)
        if len(lines) > 1 and file.read(1):
            lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def _delimiter(line: str) -> str:
    """The one that stands most often outside of quotes; a comma where none does."""
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=lambda letter: (outside.count(letter), letter == ","))
