"""Sentences on how a sample file was read, for the terminal and for comments of the configuration."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ingestd.commands.initial_configuration.file_sample import FileSample
from ingestd.core.phrases import counted, shortened
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import aligned

_FACTS = 5
_COLUMNS = 10
_RECORDS = 5
_WIDTH = 24
_PREAMBLE, _UNITS = "file.preamble.", "units."


def sentences(name: str, sample: FileSample) -> Iterator[str]:
    """Yield sentences on how the file ``name`` was read, on the facts above its header, and on its units."""
    facts, layout = sample.records.facts, sample.layout
    parts = [f"format {sample.format}"] if sample.format else []
    for fact, label in (("file.sheet", "sheet"), ("file.delimiter", "separator"), ("file.encoding", "encoding")):
        if fact in facts:
            guessed = (
                " (guessed by its letters)" if fact == "file.encoding" and "file.encoding_guessed" in facts else ""
            )
            parts.append(f"{label} {facts[fact]}{guessed}")
    if "area" in sample.settings:
        parts.append(f"cells {sample.settings['area']}")
    if layout is not None:
        last = layout.header_row + layout.header_rows - 1
        rows = f"rows {layout.header_row} to {last}" if layout.header_rows > 1 else f"row {layout.header_row}"
        parts.append(f"header in {rows}" if layout.header_row else "no header")
        parts += [f"units in row {last + 1}"] if layout.units_row else []
    if "records" in sample.settings:
        parts.append(f"records at {sample.settings['records']}")
    if "id" in sample.settings:
        parts.append(f"each identified by {sample.settings['id']}")
    yield f"The sample {name}: {', '.join([*parts, counted(sample.records.profile.records, 'record')])}."
    above = {fact: value for fact, value in facts.items() if fact.startswith(_PREAMBLE)}
    if above:
        shown = ", ".join(
            f"{{{fact}}} is {shortened(redact_text(value))}" for fact, value in list(above.items())[:_FACTS]
        )
        yield f"Rows above the header, for keys and values: {shown}{', …' if len(above) > _FACTS else ''}."
    units = [f"{fact.removeprefix(_UNITS)} {unit}" for fact, unit in facts.items() if fact.startswith(_UNITS) and unit]
    if units:
        yield f"Units: {', '.join(units)}."


def first_records(records: pl.DataFrame) -> Iterator[str]:
    """Return the names of the first columns and the first five records, aligned.

    Secrets are masked before a text is cut, because a part of a secret is not recognised.
    """
    names = records.columns[:_COLUMNS]
    rows = [names, *records.select(names).head(_RECORDS).iter_rows()]
    more = "  …" if len(records.columns) > _COLUMNS else ""
    return (f"{line}{more}" for line in aligned([[_cell(redact_text(text or "")) for text in row] for row in rows]))


def _cell(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
