"""Rejected rows that come back mended: how they are known, and how they stay tied to where they came from.

A quarantine file has four columns beyond those of its file. ``_reason``, ``_row`` and ``_field`` are for the person who
mends it; ``_origin`` is for us: what is parked for the row, how the row read then, and which file it is of. Whatever name the
file has by then, rows with an ``_origin`` are rows that came back. They are never a file's whole truth.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import polars as pl

from connectors.formats import Format, RecordChunk, resolve_format
from connectors.formats.csv import Csv
from connectors.formats.ndjson import Ndjson
from ingestd.sdk import Position, Reject

REASON, ROW, FIELD, ORIGIN = "_reason", "_row", "_field", "_origin"
RESERVED = (REASON, ROW, FIELD, ORIGIN)
UNPARTED = "_text"
"""The column that shows a row whose fields could not be told apart."""

_NAME = re.compile(r"(?P<origin>.+\.[^./]+)\.rejected(?:~\d+)?(?:[ _-][^/]*)?\.(?P<kind>[^./]+)", re.DOTALL)
_SURPLUS = re.compile(r"field \d+")
_UNCHANGED = "It came back as it was rejected: "


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """Where a row came from: its file's name below the drop folder and the first of that file's hash.

    ``references`` name what is parked for the row, ``fingerprint`` tells how it read when it was rejected.
    """

    references: tuple[str, ...]
    fingerprint: str
    sha256: str
    name: str

    def __str__(self) -> str:
        return f"{'+'.join(self.references)}/{self.fingerprint}/{self.sha256[:12]}/{self.name}"


def parse_origin(text: str | None) -> RowOrigin | None:
    """The origin that a cell tells; None where it tells none."""
    parts = (text or "").strip().split("/", 3)
    if len(parts) < 4 or not parts[0] or not parts[3]:
        return None
    return RowOrigin(references=tuple(parts[0].split("+")), fingerprint=parts[1], sha256=parts[2], name=parts[3])


def fingerprint(record: Mapping[str, str | None]) -> str:
    """A sign of a row's fields but the reserved ones; an empty field is as good as none."""
    told = sorted((name, value) for name, value in record.items() if value and name not in RESERVED)
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=4).hexdigest()


def origin_name(name: str) -> str | None:
    """The name of the file whose rejected rows a file holds, going by its own name; None where it says no such thing."""
    found = _NAME.fullmatch(name)
    return found["origin"] if found else None


def resubmitted_format(name: str, configured: str | Format | None) -> Format:
    """The format of a file whose name says that it holds rejected rows: written by us, whatever its origin is in."""
    if any(name.lower().endswith(suffix) for suffix in Ndjson.suffixes):
        return configured if isinstance(configured, Ndjson) else Ndjson()
    if isinstance(configured, Csv):
        return configured.model_copy(update={"header_row": 1, "columns": None})
    return Csv(header_row=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch, and of rows that came back what they stand in for; ``facts`` are those of the file that they are of."""

    chunk: RecordChunk
    partial: bool = False
    resolves: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def pieces_of(chunks: Iterator[RecordChunk], name: str) -> Iterator[Piece]:
    """The stretches of the file ``name`` as they are, or, where rows came back, one for each file that they are of."""
    by_name = origin_name(PurePosixPath(name).name)
    for chunk in chunks:
        came_back = ORIGIN in chunk.records.columns or any(ORIGIN in one.record for one in chunk.rejects)
        if came_back:
            yield from _sorted_out(chunk, by_name or name, name)
        elif by_name is not None:
            yield Piece(chunk=chunk, partial=True, facts=_facts(by_name, name))
        else:
            yield Piece(chunk=chunk)


@dataclass(slots=True)
class _ReturnedRows:
    """The rows of one origin."""

    kept: list[int] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    resolves: dict[str, None] = field(default_factory=dict)


def _sorted_out(chunk: RecordChunk, otherwise: str, actual: str) -> Iterator[Piece]:
    by_origin: dict[str, _ReturnedRows] = {}
    places = chunk.positions.to_list()
    for index, record in enumerate(chunk.records.iter_rows(named=True)):
        rows, origin, position = _place(by_origin, record, places[index], otherwise)
        reason = _still_bad(record, origin)
        if reason:
            rows.rejects.append(Reject(position=position, reason=reason, field=record.get(FIELD) or "", record=record))
        else:
            rows.kept.append(index)
            rows.positions.append(position)
    for reject in chunk.rejects:
        rows, _, position = _place(by_origin, reject.record, reject.position, otherwise)
        rows.rejects.append(replace(reject, position=position))
    if not by_origin:
        by_origin[otherwise] = _ReturnedRows()
    for name, rows in by_origin.items():
        kept = replace(
            chunk,
            records=chunk.records.filter(pl.int_range(chunk.records.height, eager=True).is_in(rows.kept)),
            positions=pl.Series("position", rows.positions, dtype=pl.String),
            rejects=tuple(rows.rejects),
        )
        yield Piece(chunk=kept, partial=True, resolves=tuple(rows.resolves), facts=_facts(name, actual))


def _place(
    by_origin: dict[str, _ReturnedRows], record: Mapping[str, str | None], position: Position, otherwise: str
) -> tuple[_ReturnedRows, RowOrigin | None, str]:
    """The rows that a row belongs to, its origin (None: somebody has added it), and what its place is called."""
    origin = parse_origin(record.get(ORIGIN))
    rows = by_origin.setdefault(origin.name if origin else otherwise, _ReturnedRows())
    here = f"row {position}"
    if origin is None:
        return rows, None, here
    rows.resolves.update(dict.fromkeys(origin.references))
    return rows, origin, f"{here}, which is row {record.get(ROW) or '?'} of {origin.name}"


def _still_bad(record: Mapping[str, str | None], origin: RowOrigin | None) -> str:
    """Why a row that came back can't be taken; empty where nothing is seen of it."""
    if origin is None:
        return ""
    # An emptied reason says that the row is right as it is: a field that it lacked, say, is rightly empty.
    confirmed = REASON in record and not (record[REASON] or "").strip()
    if not confirmed and fingerprint(record) == origin.fingerprint:
        return _UNCHANGED + (record.get(REASON) or "no reason is told.").removeprefix(_UNCHANGED)
    if record.get(UNPARTED):
        return f"Its text still stands in {UNPARTED}: write each field into its own column, and empty that one."
    if any(value and _SURPLUS.fullmatch(name) for name, value in record.items()):
        return "It still has more fields than the header of its file names."
    return ""


def _facts(origin: str, actual: str) -> dict[str, str]:
    path = PurePosixPath(origin)
    return {"file.name": path.name, "file.stem": path.stem, "file.path": origin, "file.returned_as": actual}


def format_for(name: str, configured: str | Format | None, member: str) -> Format:
    """The format of a file that may hold rejected rows."""
    if origin_name(PurePosixPath(name).name) is not None:
        return resubmitted_format(name, configured)
    return resolve_format(name, configured, member=member)  # type: ignore[arg-type]
