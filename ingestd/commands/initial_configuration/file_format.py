"""Detection of the format of a sample file, and of the settings for this format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ingestd.commands.initial_configuration.elements import RepeatedElements, nested_identifiers, repeated_elements
from ingestd.commands.initial_configuration.file_sample import Decisions, FileSample
from ingestd.commands.initial_configuration.letters import unproven_letters
from ingestd.commands.initial_configuration.record_keys import (
    NESTED_KEY,
    NESTED_PARENT,
    looks_like_key,
    repeated_records,
)
from ingestd.commands.initial_configuration.sample import (
    FormatSettings,
    SampleRecords,
    batches_of_file,
    first_rows,
    records_of_file,
)
from ingestd.commands.initial_configuration.table_layout import Row
from ingestd.commands.initial_configuration.table_settings import decide_layout, header_settings, preamble_settings
from ingestd.commands.initial_configuration.text_lines import LinePattern, find_pattern
from ingestd.commands.initial_configuration.workbook import understand_workbook
from ingestd.core.errors import SourceBroken
from ingestd.core.phrases import shortened
from ingestd.process.redaction import redact_text

_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_TEXTS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".dat", ".asc", ".prn"), "csv"),
    ".log": "text",
    ".json": "json",
    **dict.fromkeys((".ndjson", ".jsonl"), "ndjson"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    ".toml": "toml",
    **dict.fromkeys((".ini", ".cfg"), "ini"),
}
"""The formats of text files, which have an encoding, by suffix."""
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_DELIMITERS = ("\t", ";", "|", ",")
"""Delimiters that are rarer within fields come first."""
_IDENTIFIERS = 8
_LINES = 2000
_NESTED_ROWS = 100
_ALIKE = 0.9
"""If at least this share of rows has the same number of fields, the lines are not a log."""
_SIMILAR = 0.3
"""A path with at least this share of the largest number of records may be the intended path."""


def understand_file(path: Path, decisions: Decisions) -> FileSample:
    """Return the format settings and the records of the file ``path``.

    Raises:
        SourceBroken: the file can't be read, or has no table.
    """
    name = path.name.lower()
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    kind = "text" if decisions.given("--pattern") is not None else _kind(name)
    encoding: dict[str, object] = {}
    if (given := decisions.given("--encoding")) is not None:
        if not kind:
            raise SourceBroken(f"{path.name} is no text file of a known format, so it is read without --encoding.")
        encoding = {"type": kind, "encoding": given}
    if name.endswith(_WORKBOOKS):
        return understand_workbook(path, decisions)
    if name.endswith(".xml"):
        return _xml(path, decisions)
    match kind:
        case "text":
            return _log(path, encoding, decisions)
        case "csv":
            return _delimited(path, encoding, decisions)
        case "json":
            return _json(path, encoding, decisions)
    settings, records = _decoded(path, kind, encoding, decisions)
    return FileSample(settings=settings, records=records)


def _kind(name: str) -> str:
    return next((kind for suffix, kind in _TEXTS.items() if name.endswith(suffix)), "")


def _delimited(path: Path, encoding: FormatSettings, decisions: Decisions) -> FileSample:
    raw = {**encoding, "type": "csv", "columns": ["row"]}
    grids = {mark: first_rows(path, {**raw, "delimiter": mark})[0] for mark in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda mark: _share_alike(grids[mark]))
    share = _share_alike(grids[delimiter])
    is_table = share >= _ALIKE or (share and find_pattern(_lines(path, encoding)) is None)
    layout = decide_layout(path, grids[delimiter], decisions) if is_table else None
    if layout is None or not layout.last:
        return _log(path, encoding, decisions)
    settings: dict[str, object] = {**encoding, "type": "csv", "delimiter": delimiter}
    if not layout.header_row:
        settings["columns"] = [f"column {number}" for number in range(1, layout.last + 2)]
    elif layout.header_row > 1 or layout.header_rows > 1:
        settings["header_row"] = layout.header_row
    settings |= header_settings(layout)
    if layout.header_row > 1:
        settings |= preamble_settings(path, settings)
    is_plain = settings.keys() - encoding.keys() <= {"type", "delimiter"} and _is_same(path, settings, encoding)
    chosen, records = _decoded(path, "csv", encoding if is_plain else settings, decisions)
    return FileSample(settings=chosen, records=records, layout=layout)


def _decoded(
    path: Path, kind: str, settings: FormatSettings, decisions: Decisions
) -> tuple[FormatSettings, SampleRecords]:
    """Return the settings and the records of a file. The settings name the encoding only if it was guessed."""
    records = records_of_file(path, settings)
    if "file.encoding_guessed" not in records.facts:
        return settings, records
    encoding = found = records.facts["file.encoding"]
    if letters := unproven_letters(records, found):
        doubt = f"The encoding {found} is a guess by the letters in {', '.join(shortened(redact_text(one)) for one in letters)}."
        encoding = decisions.decide("--encoding", doubt, found)
    settings = {"type": kind, **settings, "encoding": encoding}
    return settings, records_of_file(path, settings)


def _share_alike(rows: Sequence[Row]) -> float:
    """Of the rows in the lower half, return the share with the most common number of fields; 0 if this number is 1."""
    lengths = [len(cells) for _, cells in rows[len(rows) // 2 :]]
    if not lengths:
        return 0.0
    common = max(lengths, key=lengths.count)
    return lengths.count(common) / len(lengths) if common > 1 else 0.0


def _is_same(path: Path, settings: FormatSettings, fewer: FormatSettings) -> bool:
    """Return True if the settings ``fewer`` give the same columns and facts as ``settings``."""
    try:
        found = next(batches_of_file(path, fewer))
    except SourceBroken:
        return False
    wanted = next(batches_of_file(path, settings))
    return found.records.columns == wanted.records.columns and found.facts == wanted.facts


def _xml(path: Path, decisions: Decisions) -> FileSample:
    """Read a JUnit or ReqIF document by its own format, and any other document by its repeated elements."""
    for kind in ("junit", "reqif"):
        with suppress(SourceBroken):
            return FileSample(settings={"type": kind}, records=_filled(path, {"type": kind}))
    found = repeated_elements(path) if path.name.lower().endswith(".xml") else RepeatedElements(paths={})
    if found.nested and decisions.given("--records") is None:
        settings: dict[str, object] = {"type": "xml", "records": f"**/{min(found.nested)}"}
        records = records_of_file(path, settings)
        return _nested(path, settings, [name for name, column in records.profile.contract().items() if column.filled])
    if not found.paths:
        return FileSample(settings={}, records=records_of_file(path, {}))
    settings = {"type": "xml", "records": _chosen_records(found.paths, decisions)}
    return FileSample(settings=settings, records=records_of_file(path, settings))


def _chosen_records(found: Mapping[str, int], decisions: Decisions) -> str:
    """Return the path with the most records. If another path has a similar number, the choice is a doubt."""
    chosen = max(found, key=lambda one: found[one])
    similar = [one for one, count in found.items() if count >= _SIMILAR * found[chosen]]
    if len(similar) > 1:
        return decisions.decide("--records", f"Several elements may be the records: {', '.join(similar)}.", chosen)
    return decisions.given("--records") or chosen


def _nested(path: Path, settings: FormatSettings, identifiers: Sequence[str]) -> FileSample:
    """Return the nested records, with the identifier that makes their paths unique."""
    own = [name for name in identifiers if not name.startswith(NESTED_PARENT)]
    for name in sorted(own, key=lambda one: not looks_like_key(one))[:_IDENTIFIERS]:
        whole = {**settings, "id": name}
        records = records_of_file(path, whole)
        if NESTED_KEY in records.first.columns and not repeated_records(records.first, (NESTED_KEY,)):
            return FileSample(settings=whole, records=msgspec.structs.replace(records, key=(NESTED_KEY,)))
    raise SourceBroken(
        f"{path.name} has nested records, and no field identifies each record among its siblings. Name the list of the records"
        " with --records."
    )


def _filled(path: Path, settings: FormatSettings) -> SampleRecords:
    records = records_of_file(path, settings)
    if not records.profile.records:
        raise SourceBroken(f"{path.name} has no records.")
    return records


def _json(path: Path, encoding: FormatSettings, decisions: Decisions) -> FileSample:
    """Read the list of objects that a document is or contains. If objects are nested, all nested objects are records."""
    settings, records = _decoded(path, "json", encoding, decisions)
    given = decisions.given("--records")
    values = [_parsed(record) for record in records.first.head(_NESTED_ROWS).iter_rows(named=True)]
    if given is None and (identifiers := nested_identifiers(values)):
        return _nested(path, {"type": "json", **settings, "records": "**/*"}, identifiers)
    lists = _lists(records)
    if given is None and (records.profile.records != 1 or not lists):
        return FileSample(settings=settings, records=records)
    settings = {"type": "json", **settings, "records": given or _chosen_records(lists, decisions)}
    return FileSample(settings=settings, records=records_of_file(path, settings))


def _parsed(record: Mapping[str, str | None]) -> Mapping[str, object]:
    """Return the lists of objects in a record, parsed, by the last part of the field's name."""
    return {name.rpartition(".")[2]: items for name, text in record.items() if (items := _list(text))}


def _log(path: Path, encoding: FormatSettings, decisions: Decisions) -> FileSample:
    """Read the lines of a log by a pattern."""
    given = decisions.given("--pattern")
    found = LinePattern(pattern=given) if given is not None else find_pattern(_lines(path, encoding))
    if found is None:
        raise SourceBroken(
            f"{path.name} has no table of several columns with records, and its lines do not begin with a time. Name a"
            " sample with records, or a pattern for the lines with --pattern."
        )
    settings: dict[str, object] = {**encoding, "type": "text", "pattern": found.pattern}
    if found.multiline:
        settings["multiline"] = found.multiline
    chosen, records = _decoded(path, "text", settings, decisions)
    return FileSample(settings=chosen, records=records)


def _lines(path: Path, encoding: FormatSettings) -> list[str]:
    for batch in batches_of_file(path, {**encoding, "type": "text", "pattern": "(?P<line>.*)"}):
        return [line or "" for line in batch.records["line"].head(_LINES)]
    return []


def _lists(records: SampleRecords) -> Mapping[str, int]:
    """Return the fields of the first record that are lists of objects, with their lengths."""
    found = {name: _list(text) for name, text in next(records.first.iter_rows(named=True), {}).items()}
    return {name: len(items) for name, items in found.items() if items}


def _list(text: str | None) -> list[object]:
    """Return the objects of a JSON list of objects; an empty list for any other text."""
    if not text or not text.startswith("["):
        return []
    try:
        items = json.loads(text)
    except ValueError:
        return []
    return items if all(isinstance(item, dict) for item in items) else []
