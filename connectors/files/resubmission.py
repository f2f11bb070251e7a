"""Resubmission: rejected rows that were corrected and dropped again, with links to their origins.

A quarantine file has four columns more than its source file. ``_reason``, ``_row`` and ``_field`` are for the person who
corrects the file. ``_origin`` is for ingestd: the references of the rejects, a fingerprint of the rejected row, and its source
file. A row with an ``_origin`` is a resubmitted row, whatever name its file has. Resubmitted rows never count as the whole
content of a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import msgspec
import polars as pl
from msgspec.structs import replace

from connectors.formats import Format, RecordChunk, resolve_format
from connectors.formats.csv import Csv
from connectors.formats.ndjson import Ndjson
from connectors.formats.preamble import PREAMBLE
from ingestd.sdk import Position, Reject

REASON, ROW, FIELD, ORIGIN = "_reason", "_row", "_field", "_origin"
RESERVED = (REASON, ROW, FIELD, ORIGIN)
PREAMBLE_FACTS = "_preamble"
"""The column with the facts from the rows above the source file's header, as JSON. It exists only if there are such facts."""
RAW_TEXT = "_text"
"""The column that holds the text of a row if its fields could not be separated."""

_NAME = re.compile(r"(?P<origin>.+\.[^./]+)\.rejected(?:~\d+)?(?:[ _-][^/]*)?\.(?P<kind>[^./]+)", re.DOTALL)
_SURPLUS = re.compile(r"field \d+")
_UNCHANGED = "The row was resubmitted without a change: "


class RowOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The source file of a rejected row: its name below the drop folder, and the beginning of its hash.

    ``references`` name the rejects of the row. ``fingerprint`` is the fingerprint of the row when it was rejected.
    """

    references: tuple[str, ...]
    fingerprint: str
    sha256: str
    name: str

    def __str__(self) -> str:
        return f"{'+'.join(self.references)}/{self.fingerprint}/{self.sha256[:12]}/{self.name}"


def parse_origin(text: str | None) -> RowOrigin | None:
    """Return the origin in a cell; None if the cell has no origin."""
    parts = (text or "").strip().split("/", 3)
    if len(parts) < 4 or not parts[0] or not parts[3]:
        return None
    return RowOrigin(references=tuple(parts[0].split("+")), fingerprint=parts[1], sha256=parts[2], name=parts[3])


def fingerprint(record: Mapping[str, str | None]) -> str:
    """Return a hash of a row's fields, without the reserved columns. An empty field counts as absent."""
    fields = sorted(
        (name, value) for name, value in record.items() if value and name not in {*RESERVED, PREAMBLE_FACTS}
    )
    return hashlib.blake2b(json.dumps(fields).encode(), digest_size=4).hexdigest()


def encode_preamble(facts: Mapping[str, str]) -> str:
    """Return the facts in the rows above a header as JSON; empty if there are no such facts."""
    found = {name.removeprefix(PREAMBLE): text for name, text in facts.items() if name.startswith(PREAMBLE)}
    return json.dumps(found, ensure_ascii=False) if found else ""


def has_preamble(first: RecordChunk) -> bool:
    """Return True if a file with this first chunk has facts above its header, or has rejected rows of such a file."""
    return PREAMBLE_FACTS in first.records.columns or bool(encode_preamble(first.facts))


def decode_preamble(text: str | None) -> dict[str, str]:
    """Return the facts in a cell; no facts if `encode_preamble` did not write the cell."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {f"{PREAMBLE}{name}": str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def origin_name(name: str) -> str | None:
    """Return the name of the source file if ``name`` is the name of a file with rejected rows; else None."""
    found = _NAME.fullmatch(name)
    return found["origin"] if found else None


def is_resubmitted(name: str) -> bool:
    """Return True if the last part of the path ``name`` is the name of a file with rejected rows."""
    return origin_name(name.rpartition("/")[2]) is not None


def format_for(name: str, configured: str | Format | None, member: str) -> Format:
    """Return the format of a file that may hold rejected rows."""
    if is_resubmitted(name):
        return resubmitted_format(name, configured)
    return resolve_format(name, configured, member=member)


def resubmitted_format(name: str, configured: str | Format | None) -> Format:
    """Return the format in which ingestd writes rejected rows to the file ``name``: NDJSON or CSV."""
    if any(name.lower().endswith(suffix) for suffix in Ndjson.suffixes):
        return configured if isinstance(configured, Ndjson) else Ndjson()
    if isinstance(configured, Csv):
        return configured.model_copy(update={"header_row": 1, "columns": None})
    return Csv(header_row=1)


def split_by_origin(chunks: Iterator[RecordChunk], name: str) -> Iterator[RecordChunk]:
    """Yield the chunks of the file ``name``. A chunk with resubmitted rows becomes one chunk for each source file."""
    named_origin = origin_name(name.rpartition("/")[2])
    for chunk in chunks:
        if ORIGIN in chunk.records.columns or any(ORIGIN in reject.record for reject in chunk.rejects):
            yield from _split(chunk.without_unreadable(), named_origin or name, name)
        elif named_origin is not None:
            yield replace(chunk, partial=True, facts={**chunk.facts, **_facts(named_origin, name)})
        else:
            yield chunk


class _ResubmittedRows(msgspec.Struct):
    """The resubmitted rows of one source file."""

    kept: list[int] = msgspec.field(default_factory=list)
    positions: list[str] = msgspec.field(default_factory=list)
    rejects: list[Reject] = msgspec.field(default_factory=list)
    resolves: dict[str, None] = msgspec.field(default_factory=dict)
    preamble: dict[str, str] = msgspec.field(default_factory=dict)


def _split(chunk: RecordChunk, default_origin: str, name: str) -> Iterator[RecordChunk]:
    by_origin: dict[str, _ResubmittedRows] = {}
    positions = chunk.positions.to_list()
    for index, record in enumerate(chunk.records.iter_rows(named=True)):
        rows, origin, position = _assign(by_origin, record, positions[index], default_origin)
        reason = _find_fault(record, origin)
        if reason:
            rows.rejects.append(Reject(position=position, reason=reason, field=record.get(FIELD) or "", record=record))
        else:
            rows.kept.append(index)
            rows.positions.append(position)
    for reject in chunk.rejects:
        rows, _, position = _assign(by_origin, reject.record, reject.position, default_origin)
        rows.rejects.append(dataclasses.replace(reject, position=position))
    if not by_origin:
        by_origin[default_origin] = _ResubmittedRows()
    for origin_file, rows in by_origin.items():
        yield replace(
            chunk,
            records=chunk.records.filter(pl.int_range(chunk.records.height, eager=True).is_in(rows.kept)),
            positions=pl.Series("position", rows.positions, dtype=pl.String),
            rejects=tuple(rows.rejects),
            facts={**chunk.facts, **rows.preamble, **_facts(origin_file, name)},
            partial=True,
            resolves=tuple(rows.resolves),
        )


def _assign(
    by_origin: dict[str, _ResubmittedRows], record: Mapping[str, str | None], position: Position, default_origin: str
) -> tuple[_ResubmittedRows, RowOrigin | None, str]:
    """Return the rows of the row's source file, the row's origin (None: a person added the row), and its position as text."""
    origin = parse_origin(record.get(ORIGIN))
    rows = by_origin.setdefault(origin.name if origin else default_origin, _ResubmittedRows())
    rows.preamble = rows.preamble or decode_preamble(record.get(PREAMBLE_FACTS))
    here = f"row {position}"
    if origin is None:
        return rows, None, here
    rows.resolves.update(dict.fromkeys(origin.references))
    return rows, origin, f"{here}, which is row {record.get(ROW) or '?'} of {origin.name}"


def _find_fault(record: Mapping[str, str | None], origin: RowOrigin | None) -> str:
    """Return why a resubmitted row is rejected again; empty if no fault is found."""
    if origin is None:
        return ""
    # If a person empties the reason, they confirm the row, for example because a missing field is meant to be empty.
    is_confirmed = REASON in record and not (record[REASON] or "").strip()
    if not is_confirmed and fingerprint(record) == origin.fingerprint:
        return _UNCHANGED + (record.get(REASON) or "no reason is given.").removeprefix(_UNCHANGED)
    if record.get(RAW_TEXT):
        return (
            f"The column {RAW_TEXT} still holds the text of the row: write each field into its own column, and"
            f" empty {RAW_TEXT}."
        )
    if any(value and _SURPLUS.fullmatch(name) for name, value in record.items()):
        return "The row still has more fields than the header of its file names."
    return ""


def _facts(origin: str, name: str) -> dict[str, str]:
    path = PurePosixPath(origin)
    return {"file.name": path.name, "file.stem": path.stem, "file.path": origin, "file.returned_as": name}
