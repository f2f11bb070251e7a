"""The conversion of the rows of a push, from a data frame or mappings, to entries and rejected rows.

A row becomes an entry like a record of a source: by a template of the key, a template of the value, and the rules of the
setting ``values``. The mapping accepts only text, so a number is first converted to text by a rule that the caller chooses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Rational, Real
from typing import Any

import msgspec
import polars as pl
from pydantic import ValidationError

from ingestd.core.errors import RecordUnreadable
from ingestd.core.mapping import EntrySpec, TemplateError, parse_template
from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.core.mapping.column import no_column_sentence
from ingestd.core.phrases import first_names, nearest, shortened
from ingestd.core.record import Reject
from ingestd.sdk import pack
from ingestd.settings.entry_values import ValueSettings
from ingestd.settings.sentences import from_message

_ROUNDING = ("decimals", "digits")
_SHOWN_ROWS = 5
_KEPT_TYPE = "scalar"


class InvalidPush(ValueError):
    """An argument of a push can't be used, so nothing was sent. The sentence names the argument."""


class RejectedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row without effect. ``row`` counts from 0, as in ``frame[row]``. ``key`` is empty if the row has no key."""

    row: int
    key: str
    reason: str


class RowEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of a row. ``data_type`` None: the stored entry keeps its type."""

    row: int
    key: str
    value: str
    data_type: str | None


class PushedRows(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a push, which have different keys, and the rejected rows of the push."""

    entries: tuple[RowEntry, ...]
    rejected: tuple[RejectedRow, ...]


def read_rows(
    rows: Any, *, key: str, value: str, data_type: str | None, number: str | None, rules: Mapping[str, Any]
) -> PushedRows:
    """Return the entries and the rejected rows of a frame; see `NamedSink.push` for the arguments.

    Raises:
        InvalidPush: an argument can't be used, a column is missing, or no argument says how to write floating-point numbers.
    """
    if number not in {None, "repr"}:
        raise InvalidPush(
            f"number={number!r} is not a rule for writing numbers. Use number='repr', decimals=N or digits=N."
        )
    rows = rows if isinstance(rows, pl.DataFrame) or _is_pandas(rows) else _listed(rows)
    columns = _columns(rows)
    key, value = _template(key, columns), _template(value, columns)
    key_fields, value_fields = _fields_of("key", key), _fields_of("value", value)
    data_types = data_type or _KEPT_TYPE
    _fields_of("data_type", data_types)
    mapping = EntryMapping((EntrySpec(key=key, value=value, type=data_types, rules=_rules(rules).rules()),))
    for name in mapping.fields if columns else ():
        if name not in columns:
            raise InvalidPush(no_column_sentence(name, tuple(columns)))
    records = _records(rows, mapping.fields)
    if number is None and not any(rules.get(name) is not None for name in _ROUNDING):
        _refuse_floats(records, [name for name in mapping.fields if name not in key_fields])
    mapped, rejects = _map(records, mapping, key_fields)
    entries = [
        RowEntry(row=row, key=found, value=text, data_type=kind if data_type is not None else None)
        for found, text, kind, row in mapped.iter_rows()
    ]
    reasons = {int(one.position): one.reason for one in rejects}
    missing = f"There is no value: {' or '.join(repr(name) for name in value_fields)} is missing."
    made = {one.row for one in entries}
    reasons |= {row: missing for row in range(len(records)) if row not in made and row not in reasons}
    keys = _keys_of([records[row] for row in reasons], key_fields, key) if reasons else []
    rejected = [
        RejectedRow(row=row, key=found, reason=reason)
        for (row, reason), found in zip(reasons.items(), keys, strict=True)
    ]
    unique, repeated = _without_repeated(entries)
    return PushedRows(entries=unique, rejected=tuple(sorted((*rejected, *repeated), key=lambda one: one.row)))


def _fields_of(argument: str, template: str) -> tuple[str, ...]:
    try:
        return parse_template(template).fields
    except TemplateError as error:
        raise InvalidPush(f"{argument}='{template}' is no template: {error}.") from None


def _map(
    records: Sequence[Mapping[str, Any]], mapping: EntryMapping, key_fields: Collection[str]
) -> tuple[pl.DataFrame, tuple[Reject, ...]]:
    """Return key, value, data_type and position (the row) of the entries, and the rejected rows."""
    batch = pack(
        records,
        parse=lambda record: {name: _text(name, found, is_key=name in key_fields) for name, found in record.items()},
        positions=range(len(records)),
        cursor={},
        last=True,
    )
    mapped = mapping.apply(batch.records, batch.positions, mapping.row_hashes(batch.records, {}), {})
    entries = mapped.entries.select("key", "value", "data_type", "position")
    return entries, (*batch.rejects, *(reject for reject, _ in mapped.rejects))


def _keys_of(records: Sequence[Mapping[str, Any]], fields: Collection[str], key: str) -> list[str]:
    """Return the key of each record; empty if a record has no key."""
    keyed = [{name: found for name, found in record.items() if name in fields} for record in records]
    made, _ = _map(keyed, EntryMapping((EntrySpec(key=key, value=key),)), fields)
    found = dict(made.select("position", "key").iter_rows())
    return [found.get(row, "") for row in range(len(records))]


def _without_repeated(entries: Sequence[RowEntry]) -> tuple[tuple[RowEntry, ...], list[RejectedRow]]:
    """Return the entries with a key that occurs once.

    If several rows have the same key, all of them are rejected, because no rule says which row is right.
    """
    rows = defaultdict[str, list[int]](list)
    for one in entries:
        rows[one.key].append(one.row)
    rejected = [
        RejectedRow(row=one.row, key=one.key, reason=_repeated_sentence(one.key, rows[one.key]))
        for one in entries
        if len(rows[one.key]) > 1
    ]
    return tuple(one for one in entries if len(rows[one.key]) == 1), rejected


def _repeated_sentence(key: str, rows: Sequence[int]) -> str:
    return f"The key '{shortened(key)}' is in the rows {first_names(rows, _SHOWN_ROWS)}. Keep one of them."


def _template(text: str, columns: Iterable[str]) -> str:
    """Return ``text`` as a template: ``{text}`` if it is a column's name or has no opening brace, else ``text``."""
    if text in columns or "{" not in text:
        return "{" + text + "}"
    return text


def _rules(given: Mapping[str, Any]) -> ValueSettings:
    known = [name for name in ValueSettings.model_fields if name not in {"deadband", "missing"}]
    for name in given:
        if name not in known:
            raise InvalidPush(
                f"push() has no argument '{name}'.{nearest(name, known) or ' It has: ' + ', '.join(known)}"
            )
    try:
        return ValueSettings.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        sentence = from_message(first["type"], first["msg"], first.get("ctx", {}))
        raise InvalidPush(f"The argument '{name}' can't be used: {sentence}") from None


def _columns(rows: Any) -> dict[str, None]:
    """Return the names of the columns, in their order.

    Raises:
        InvalidPush: two columns have the same name.
    """
    if isinstance(rows, pl.DataFrame):
        return dict.fromkeys(rows.columns)
    if _is_pandas(rows):
        names = [str(name) for name in rows.columns]
        for name in names:
            if names.count(name) > 1:
                raise InvalidPush(f"The frame has several columns '{name}'. Rename all but one of them.")
        return dict.fromkeys(names)
    return dict.fromkeys(str(name) for record in rows for name in record)


def _listed(rows: Any) -> list[Mapping[str, Any]]:
    """Return the mappings of an iterable.

    Raises:
        InvalidPush: ``rows`` is not iterable, or an item is not a mapping.
    """
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise InvalidPush(
            f"Expected a frame of polars or pandas, or an iterable of mappings; found {type(rows).__name__}. Convert it first."
        )
    listed = list(rows)
    for row, record in enumerate(listed):
        if not isinstance(record, Mapping):
            raise InvalidPush(f"Expected a mapping in row {row}; found {type(record).__name__}.")
    return listed


def _is_pandas(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")


def _records(rows: Any, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return the named fields of each row, as Python objects."""
    if isinstance(rows, pl.DataFrame):
        # Python converts a 32-bit number to 64 bits. The shortest text of the result would be longer than the shortest text of
        # the 32-bit number, so the 32-bit number is first written as text.
        single = [name for name in fields if rows.schema[name] == pl.Float32]
        return rows.select(fields).with_columns(pl.col(single).cast(pl.String).cast(pl.Float64)).to_dicts()
    if _is_pandas(rows):
        named = {str(name): _pandas_objects(rows[name]) for name in rows.columns if str(name) in fields}
        return [dict(zip(fields, row, strict=True)) for row in zip(*(named[name] for name in fields), strict=True)]
    return [{str(name): found for name, found in record.items() if str(name) in fields} for record in rows]


def _pandas_objects(column: Any) -> Iterable[Any]:
    """Return the values of a column of pandas. NaN becomes None, except in a floating-point column of numpy."""
    kind, found = str(column.dtype), column
    if kind.lower() in {"float16", "float32"}:
        found = [float(str(one)) for one in column.to_numpy(dtype=kind.lower(), na_value=math.nan)]
    if kind in {"float16", "float32", "float64"}:
        return list(found)
    return [None if missing else one for one, missing in zip(found, column.isna(), strict=True)]


def _refuse_floats(records: Iterable[Mapping[str, Any]], fields: Iterable[str]) -> None:
    for row, record in enumerate(records):
        for name in fields:
            found: Any = record.get(name)
            if _is_float(found) and math.isfinite(found):
                raise InvalidPush(
                    f"The column '{name}' has floating-point numbers, such as {found} in row {row}, and they can be written in "
                    "several ways. Choose one: decimals=3 or digits=6 rounds them, number='repr' writes the shortest text that "
                    "reads back as the same number."
                )


def _is_float(found: Any) -> bool:
    return isinstance(found, Real) and not isinstance(found, Rational)


def _text(name: str, found: Any, *, is_key: bool) -> str | None:
    """Return the text of a field; None if the row has no value.

    Raises:
        RecordUnreadable: the value has no exact text.
    """
    reason = ""
    match found:
        case None:
            return None
        case str():
            if found.isascii() or found.encode(errors="ignore").decode() == found:
                return found
            reason = "has characters that can't be encoded as UTF-8"
        case bool():
            reason = "is true or false. Convert the column to text"
        case Integral():
            return str(int(found))
        case Decimal() if found.is_finite():
            return format(found, "f")
        case _ if _is_float(found) and not math.isfinite(found):
            reason = f"is {found}, which is no number"
        case _ if _is_float(found) and is_key:
            reason = f"is the floating-point number {found}, which can't be a part of a key. Convert the column to text"
        case _ if _is_float(found):
            return repr(found if type(found) is float else float(str(found)))
        case _:
            reason = f"is of the type {type(found).__name__}, which has no exact text. Convert the column to text"
    raise RecordUnreadable(f"The value of column '{name}' {reason}.", field=name)
