"""Converter of CSV and TSV files to a Parquet file and a JSON preview, in bounded memory."""

from __future__ import annotations

import codecs
import csv
from functools import partial
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
    """Make ``table.parquet`` and ``preview.json``; see `Convert`."""
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
    """Return a file with the text in UTF-8, and its original encoding: UTF-16, UTF-8 or Windows-1252."""
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
    """Decode the whole file. If ``target`` is not None, write the text to it in UTF-8."""
    with source.open("rb") as file:
        decoded = codecs.getincrementaldecoder(encoding)()
        if target is None:
            for part in iter(partial(file.read, _PART_BYTES), b""):
                _require_text(decoded.decode(part))
            decoded.decode(b"", final=True)
            return
        with target.open("w", encoding="utf-8", newline="") as out:
            for part in iter(partial(file.read, _PART_BYTES), b""):
                out.write(_require_text(decoded.decode(part)))
            out.write(decoded.decode(b"", final=True))


def _require_text(text: str) -> str:
    if "\0" in text:
        raise ConversionRefused("user", "The file is not text: it has zero bytes.")
    return text


def _sample(text: Path) -> list[str]:
    """Return the first lines from the first line that is not blank. Only a single line that is too long may be incomplete."""
    with text.open(encoding="utf-8-sig", newline="") as file:
        lines = file.read(_SAMPLE_BYTES).splitlines(keepends=True)
        if len(lines) > 1 and file.read(1):
            lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def _delimiter(line: str) -> str:
    """Return the delimiter that occurs most often outside quotes; a comma if the line has no delimiter."""
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=lambda letter: (outside.count(letter), letter == ","))
