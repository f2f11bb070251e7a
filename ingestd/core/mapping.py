"""The mapping from records to entries: a pure rule, compiled to column expressions.

A value is the exact text of the record: it is not parsed, rounded or trimmed.

* A record without a field (null or empty) that the *key* or the *type* needs, or with an empty key, is rejected. It is
  unknown which entry the record is about.
* A record without a field (null) that the *value* needs makes no entry. Empty text is a value and makes an entry.
* A record with the character U+0000 in its key, value or type is rejected, because no service and no database accepts it.
* If the header of the partition lacks a name of the mapping, the whole partition is rejected (`SourceBroken`).
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import asdict, dataclass
from functools import cached_property

import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch, Position, Reject
from ingestd.core.template import Field, Literal, Template, TemplateError, parse_template

__all__ = ["EntrySpec", "Mapped", "Mapping", "TemplateError", "parse_template"]

COLUMN = "column"
_PREFIX = "file."
_NO_ENTRIES = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.UInt64}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySpec:
    """One entry for each record (``value``), or one for each column (``columns``; the key contains ``{column}``)."""

    key: str
    value: str | None = None
    columns: tuple[str, ...] = ()
    type: str = "scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """Mapped records.

    ``entries``: key, value, data_type (String), row_hash (UInt64), position, in the order of the records.
    ``rejects``: the rejected records, each with its row hash.
    """

    entries: pl.DataFrame
    rejects: tuple[tuple[Reject, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    key: Template
    value: Template
    type: Template


_with_nul = pl.any_horizontal(
    pl.col("key", "value", "data_type").str.contains("\0", literal=True).fill_null(value=False)
)


class Mapping:
    """Compiled entry specifications, applied to batches. Immutable."""

    def __init__(self, specs: Iterable[EntrySpec]) -> None:
        """Compile ``specs``.

        Raises:
            TemplateError: a template has a syntax error.
        """
        self._specs = tuple(specs)
        self._rules = tuple(rule for spec in self._specs for rule in _rules(spec))
        names = [
            name for rule in self._rules for template in (rule.key, rule.value, rule.type) for name in template.fields
        ]
        self._fields = tuple(dict.fromkeys(name for name in names if not name.startswith(_PREFIX)))
        self._facts = tuple(dict.fromkeys(name for name in names if name.startswith(_PREFIX)))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a record that the mapping uses; changes of other fields do not change the record."""
        return self._fields

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts of a batch that the mapping uses, such as ``file.stem``."""
        return self._facts

    def columns_of(self, key: str, member: str = "value") -> tuple[str, ...]:
        """Return the columns of the source of an entry with this key; empty if they are unknown.

        ``member``: the member of the entry, ``key``, ``value`` or ``dataType``. If the key matches several templates, the
        result has the columns of all.
        """
        matching = [rule for rule in self._rules if _matches(rule.key, key)]
        templates = [{"key": rule.key, "dataType": rule.type}.get(member, rule.value) for rule in matching]
        names = [name for template in templates for name in template.fields if not name.startswith(_PREFIX)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def digest(self) -> str:
        """A digest of the specifications and of the version that hashes the rows; readings with the same digest compare."""
        text = json.dumps([[asdict(spec) for spec in self._specs], pl.__version__], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def row_hashes(self, records: pl.DataFrame, facts: MappingOf[str, str]) -> pl.Series:
        """Return a 64-bit hash (``pl.UInt64``) of the used fields and facts of each record.

        Polars may hash differently in another version, so its version is part of `digest`.
        """
        if not records.height:
            return pl.Series("row_hash", [], dtype=pl.UInt64)
        used = [*_columns(records, self._fields), *(pl.lit(facts[name]).alias(name) for name in self._facts)]
        if not used:
            used.append(pl.lit("").alias("\0"))
        # with_columns, because a select of only literals returns a single row.
        return records.with_columns(pl.struct(used).hash().alias("\0row_hash"))["\0row_hash"].alias("row_hash")

    def check_header(self, batch: Batch) -> None:
        """Check that the partition has the columns and facts that the mapping uses.

        Raises:
            SourceBroken: a name is missing; the sentence lists the existing names and the nearest one.
        """
        for name in self._facts:
            if name not in batch.facts:
                raise SourceBroken(f"The mapping uses {{{name}}}, but the source provides only {_listed(batch.facts)}.")
        if not batch.header:
            return
        for name in self._fields:
            if name not in batch.records.columns:
                near = difflib.get_close_matches(name, batch.records.columns, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else " Is it the right file, and the right mapping?"
                raise SourceBroken(
                    f"There is no column '{name}'; the columns are {_listed(batch.records.columns)}.{hint}"
                )

    def empty_entries(self, position: pl.DataType) -> pl.DataFrame:
        """Return no entries, with the columns of `apply`."""
        return pl.DataFrame(schema={**_NO_ENTRIES, "position": position})

    def apply(
        self, records: pl.DataFrame, positions: pl.Series, hashes: pl.Series, facts: MappingOf[str, str]
    ) -> Mapped:
        """Return the entries and rejects of some records. The first three arguments have the same height."""
        if not records.height:
            return Mapped(entries=self.empty_entries(positions.dtype), rejects=())
        frame = records.with_columns(_columns(records, self._fields)).select(
            *map(_column, self._fields),
            positions.alias("\0position"),
            hashes.alias("\0row_hash"),
            pl.int_range(pl.len(), dtype=pl.Int64).alias("\0order"),
        )
        bound = {name: facts[name] for name in self._facts}
        frames: list[pl.DataFrame] = []
        bad: dict[int, tuple[str, str]] = {}
        for rule in self._rules:
            key, value, data_type = (template.bind(bound) for template in (rule.key, rule.value, rule.type))
            mapped = frame.select(
                _text(key).alias("key"), _text(value).alias("value"), _text(data_type).alias("data_type"),
                pl.col("\0row_hash").alias("row_hash"), pl.col("\0position").alias("position"), pl.col("\0order"),
                _has_fields(key, data_type).alias("\0has_fields"),
            )  # fmt: skip
            valid = pl.col("\0has_fields") & (pl.col("key") != "") & ~_with_nul
            for row in mapped.filter(~valid).iter_rows(named=True):
                bad.setdefault(
                    row["\0order"], _reason(key, data_type, row["key"], frame.row(row["\0order"], named=True))
                )
            frames.append(mapped.filter(valid & pl.col("value").is_not_null()))
        entries = frames[0] if len(frames) == 1 else pl.concat(frames).sort("\0order", maintain_order=True)
        if bad:
            # A record is mapped or rejected as a whole: entries of half a row would be a state that the source never had.
            entries = entries.filter(~pl.col("\0order").is_in(list(bad)))
        rejects = tuple(
            (
                Reject(
                    position=_position(positions, order),
                    reason=reason,
                    field=field,
                    record=records.row(order, named=True),
                ),
                int(hashes[order]),
            )
            for order, (reason, field) in sorted(bad.items())
        )
        return Mapped(entries=entries.select(*_NO_ENTRIES, "position"), rejects=rejects)


def _rules(spec: EntrySpec) -> Iterable[_Rule]:
    key, data_type = parse_template(spec.key), parse_template(spec.type)
    if not spec.columns:
        yield _Rule(key=key, value=parse_template(spec.value or ""), type=data_type)
    for column in spec.columns:
        value = Template(text=f"{{{column}}}", parts=(Field(column),))
        yield _Rule(key=key.bind({COLUMN: column}), value=value, type=data_type.bind({COLUMN: column}))


def _matches(template: Template, text: str) -> bool:
    """Return whether a template can result in ``text``; a field has at least one character."""
    pattern = "".join(re.escape(part.text) if isinstance(part, Literal) else "(?s:.+?)" for part in template.parts)
    return re.fullmatch(pattern, text) is not None


def _columns(records: pl.DataFrame, names: Iterable[str]) -> list[pl.Expr]:
    return [_column(name) if name in records.columns else pl.lit(None, dtype=pl.String).alias(name) for name in names]


def _column(name: str) -> pl.Expr:
    """Return the column with exactly this name; ``pl.col`` takes ``*`` and ``^…$`` as patterns."""
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if pattern else name)


def _text(template: Template) -> pl.Expr:
    """Return the template as a column of text; null if a field is null."""
    parts = [pl.lit(part.text) if isinstance(part, Literal) else _column(part.name) for part in template.parts]
    if not parts:
        return pl.lit("")
    return parts[0] if len(parts) == 1 else pl.concat_str(parts)


def _has_fields(*templates: Template) -> pl.Expr:
    """Return whether a record has text in every field that the templates name."""
    names = [name for template in templates for name in template.fields]
    filled = [(_column(name) != "").fill_null(value=False) for name in names]
    return pl.all_horizontal(filled) if filled else pl.lit(value=True)


def _reason(key: Template, data_type: Template, made: str | None, record: MappingOf[str, object]) -> tuple[str, str]:
    for template, use in ((key, "key"), (data_type, "type")):
        for name in template.fields:
            if record[name] is None:
                return f"The record has no '{name}', which the {use} '{template.text}' needs.", name
            if record[name] == "":
                return f"'{name}' is empty; the {use} '{template.text}' needs it.", name
    if made:
        return "The record contains the character U+0000, which no entry can contain.", ""
    return f"The key '{key.text}' is empty.", key.fields[0] if key.fields else ""


def _position(positions: pl.Series, index: int) -> Position:
    position = positions[index]
    return position if isinstance(position, str) else int(position)


def _listed(names: Iterable[str]) -> str:
    listed = [f"'{name}'" for name in names]
    shown = ", ".join(listed[:12])
    return (shown + f" and {len(listed) - 12} more" if len(listed) > 12 else shown) or "none"
