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
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import asdict, dataclass, fields
from functools import cached_property, reduce
from itertools import product
from operator import xor

import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.conversion import ValueRefused, ValueRules
from ingestd.core.mapping.program import ORDER, VALUE, Program, compile_program
from ingestd.core.mapping.specification import NO_RULES, EntrySpec, Table, TableSource, name_parts
from ingestd.core.record import Batch, Position, Reject
from ingestd.core.template import COLUMN, Field, Literal, Template, parse_template

_PREFIX = "file."
_PART = "file.part."
_NAME = "file.name"
_UNITS = "units."
_NO_ENTRIES = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.UInt64}
_ALWAYS = ("key", "value", "columns", "type")
"""The members of a specification that its digest always has; another one only if it is set."""


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
    unit: Template

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(name for part in (self.key, self.value, self.type, self.unit) for name in part.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The rules of one specification. ``parts``: the form of the file's name. ``values``: what becomes of a value."""

    rules: tuple[_Rule, ...]
    program: Program | None
    parts: re.Pattern[str] | None
    values: ValueRules | None

    def columns_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the fields and facts of some names."""
        if self.program is None:
            return tuple(names)
        return tuple(column for name in names for column in self.program.columns_of(name))

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields and facts that the rules use."""
        where = self.program.where.columns if self.program is not None and self.program.where is not None else ()
        return (*where, *(name for rule in self.rules for name in self.columns_of(rule.fields)))

    def facts(self, facts: MappingOf[str, str]) -> dict[str, str]:
        """Return the facts of a file that the rules use."""
        known = {name: facts[name] for name in self.columns if name in facts and name.startswith(_PREFIX)}
        found = self.parts.fullmatch(facts[_NAME]) if self.parts is not None else None
        return known | ({f"{_PART}{name}": text for name, text in found.groupdict().items()} if found else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The fields of a record and the facts of a batch that some groups use."""

    fields: tuple[str, ...]
    facts: tuple[str, ...]

    @classmethod
    def of(cls, groups: Iterable[_Group]) -> _Names:
        names = [_NAME if name.startswith(_PART) else name for group in groups for name in group.columns]
        return cls(
            fields=tuple(dict.fromkeys(name for name in names if not name.startswith(_PREFIX))),
            facts=tuple(dict.fromkeys(name for name in names if name.startswith(_PREFIX))),
        )


_with_nul = pl.any_horizontal(
    pl.col("key", "value", "data_type").str.contains("\0", literal=True).fill_null(value=False)
)


class Mapping:
    """Compiled entry specifications, applied to batches. Immutable."""

    def __init__(self, specs: Iterable[EntrySpec], tables: MappingOf[TableSource, Table] | None = None) -> None:
        """Compile ``specs``. A table of a lookup that is not in ``tables`` is empty.

        Raises:
            TemplateError: a template has a syntax error.
        """
        self._specs = tuple(specs)
        self._tables = {source: dict(tables[source]) for source in self.table_sources} if tables else {}
        self._programs = tuple(compile_program(spec, self._tables) for spec in self._specs)
        self._dynamic = any(spec.selection is not None for spec in self._specs)
        self._groups = self._compile(())
        self._names = _Names.of(self._groups)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a record that the mapping uses; changes of other fields do not change the record.

        Columns that a selection finds in a batch are used, too, and not among them.
        """
        return self._names.fields

    @property
    def table_sources(self) -> tuple[TableSource, ...]:
        """The tables of the lookups, each once."""
        return tuple(dict.fromkeys(lookup.table for spec in self._specs for _, lookup in spec.lookup))

    def with_tables(self, tables: MappingOf[TableSource, Table]) -> Mapping:
        """Return this mapping with the content of all tables of its lookups."""
        return Mapping(self._specs, tables)

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts of a batch that the mapping uses, such as ``file.stem``."""
        return self._names.facts

    def columns_of(self, key: str, member: str = "value") -> tuple[str, ...]:
        """Return the columns of the source of an entry with this key; empty if they are unknown.

        ``member``: the member of the entry, ``key``, ``value`` or ``dataType``. If the key matches several templates, the
        result has the columns of all.
        """
        groups = self._compile(self._selected(key)) if self._dynamic else self._groups
        names: list[str] = []
        for group in groups:
            for rule in group.rules:
                if _matches(rule.key, key):
                    template = {"key": rule.key, "dataType": rule.type}.get(member, rule.value)
                    names += group.columns_of(template.fields)
        return tuple(dict.fromkeys(name for name in names if not name.startswith(_PREFIX)))

    @cached_property
    def digest(self) -> str:
        """A digest of specifications, tables and the version that hashes the rows; readings with the same digest compare."""
        unset = {member.name: member.default for member in fields(EntrySpec)}
        specs = [
            {
                name: value
                for name, value in asdict(spec).items()
                if name in _ALWAYS or getattr(spec, name) != unset[name]
            }
            for spec in self._specs
        ]
        tables = [sorted(self._tables[source].items()) for source in self._tables]
        content = [specs, pl.__version__, *([tables] if tables else [])]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def row_hashes(self, records: pl.DataFrame, facts: MappingOf[str, str]) -> pl.Series:
        """Return a 64-bit hash (``pl.UInt64``) of the used fields and facts of each record.

        Polars may hash differently in another version, so its version is part of `digest`.
        """
        if not records.height:
            return pl.Series("row_hash", [], dtype=pl.UInt64)
        names = self._names_in(records)
        columns = _columns(records, names.fields, facts)
        used = [pl.lit(facts[name]).alias(name) for name in names.facts]
        if not self._dynamic:
            used = [*columns, *used]
        if not used:
            used.append(pl.lit("").alias("\0"))
        hashed = pl.struct(used).hash()
        if self._dynamic:
            # Batches of one partition may have different columns, so a column without a value must not change the hash.
            parts = [_hash_of_value(name, column) for name, column in zip(names.fields, columns, strict=True)]
            hashed = reduce(xor, parts, hashed)
        # with_columns, because a select of only literals returns a single row.
        return records.with_columns(hashed.alias("\0row_hash"))["\0row_hash"].alias("row_hash")

    def check_header(self, batch: Batch) -> None:
        """Check that the partition has the columns and facts that the mapping uses.

        Raises:
            SourceBroken: a name is missing; the sentence lists the existing names and the nearest one.
        """
        for name in self.facts:
            if name not in batch.facts:
                raise SourceBroken(f"The mapping uses {{{name}}}, but the source provides only {_listed(batch.facts)}.")
        for spec, group in zip(self._specs, self._groups, strict=True):
            if group.parts is not None and not group.parts.fullmatch(batch.facts.get(_NAME, "")):
                raise SourceBroken(
                    f"The file's name '{batch.facts.get(_NAME, '')}' does not have the form '{spec.file_name}' (file_name)."
                )
        if batch.header:
            self._check_columns(batch.records.columns, batch.facts)

    def _check_columns(self, columns: Sequence[str], facts: MappingOf[str, str]) -> None:
        for name in self.fields:
            if name not in columns and name not in facts:
                raise SourceBroken(_no_unit(name) if name.startswith(_UNITS) else _no_column(name, columns))
        for spec, group in zip(self._specs, self._compile(columns), strict=True):
            if spec.selection is None:
                continue
            unknown = [name for name in spec.selection.excluded if not spec.selection.excludes(name, columns)]
            if unknown:
                raise SourceBroken(_no_column(unknown[0], columns))
            if not group.rules:
                raise SourceBroken(f"The mapping selects none of the columns {_listed(columns)} (columns).")

    def empty_entries(self, position: pl.DataType) -> pl.DataFrame:
        """Return no entries, with the columns of `apply`."""
        return pl.DataFrame(schema={**_NO_ENTRIES, "position": position})

    def apply(
        self, records: pl.DataFrame, positions: pl.Series, hashes: pl.Series, facts: MappingOf[str, str]
    ) -> Mapped:
        """Return the entries and rejects of some records. The first three arguments have the same height."""
        if not records.height:
            return Mapped(entries=self.empty_entries(positions.dtype), rejects=())
        names = self._names_in(records)
        frame = records.with_columns(_columns(records, names.fields, facts)).select(
            *map(column_named, names.fields),
            positions.alias("\0position"),
            hashes.alias("\0row_hash"),
            pl.int_range(pl.len(), dtype=pl.Int64).alias(ORDER),
        )
        frames: list[pl.DataFrame] = []
        bad: dict[int, tuple[str, str]] = {}
        for group in self._groups_in(records):
            bound = group.facts(facts)
            scope = frame
            if group.program is not None:
                scope = frame.with_columns([pl.lit(text).alias(name) for name, text in bound.items()])
                scope, faulty = group.program.run(scope, [name for rule in group.rules for name in rule.fields])
                bad = faulty | bad
            for rule in group.rules:
                mapped = _apply(group, rule, bound, scope, bad)
                frames.append(mapped)
        if not frames:
            return Mapped(entries=self.empty_entries(positions.dtype), rejects=())
        entries = frames[0] if len(frames) == 1 else pl.concat(frames).sort(ORDER, maintain_order=True)
        if bad:
            # A record is mapped or rejected as a whole: entries of half a row would be a state that the source never had.
            entries = entries.filter(~pl.col(ORDER).is_in(list(bad)))
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

    def _compile(self, columns: Sequence[str]) -> tuple[_Group, ...]:
        """Return the rules for a batch with these columns."""
        return tuple(_group(spec, program, columns) for spec, program in zip(self._specs, self._programs, strict=True))

    def _groups_in(self, records: pl.DataFrame) -> tuple[_Group, ...]:
        return self._compile(records.columns) if self._dynamic else self._groups

    def _names_in(self, records: pl.DataFrame) -> _Names:
        return _Names.of(self._compile(records.columns)) if self._dynamic else self._names

    def _selected(self, key: str) -> tuple[str, ...]:
        """Return the columns that the key of an entry may name."""
        found: list[str] = []
        for spec in self._specs:
            if spec.selection is not None:
                parts = parse_template(spec.key).parts
                for column, other in product((".+?", ".+"), repeat=2):
                    match = re.fullmatch(_key_pattern(parts, column, other), key, re.DOTALL)
                    found += [match["column"]] if match else []
        return tuple(dict.fromkeys(found))


def _group(spec: EntrySpec, program: Program | None, columns: Sequence[str]) -> _Group:
    key, data_type = parse_template(spec.key), parse_template(spec.type)
    unit = parse_template(spec.rules.unit.source if spec.rules.unit is not None else "")
    rules: list[_Rule] = []
    if spec.selection is not None:
        columns = spec.selection.of(columns, but=(*key.fields, *data_type.fields))
    else:
        columns = spec.columns
        if not columns:
            field = Template(text=spec.expression, parts=(Field(VALUE),)) if spec.expression is not None else None
            value = field or parse_template(spec.value or "")
            rules.append(_Rule(key=key, value=value, type=data_type, unit=unit))
    types = {column: parse_template(text) for column, text in spec.types}
    for column in columns:
        bound = {COLUMN: column}
        rules.append(
            _Rule(
                key=key.bind(bound),
                value=Template(text=f"{{{column}}}", parts=(Field(column),)),
                type=types.get(column, data_type).bind(bound),
                unit=unit.bind(bound),
            )
        )
    return _Group(
        rules=tuple(rules),
        program=program,
        parts=name_parts(spec.file_name) if spec.file_name is not None else None,
        values=spec.rules if spec.rules != NO_RULES else None,
    )


def _apply(
    group: _Group, rule: _Rule, bound: MappingOf[str, str], scope: pl.DataFrame, bad: dict[int, tuple[str, str]]
) -> pl.DataFrame:
    """Return the entries of one rule; add the rejected records to ``bad``."""
    key, value, data_type = (template.bind(bound) for template in (rule.key, rule.value, rule.type))
    mapped = scope.select(
        _text(key).alias("key"), _text(value).alias("value"), _text(data_type).alias("data_type"),
        pl.col("\0row_hash").alias("row_hash"), pl.col("\0position").alias("position"), pl.col(ORDER),
        _has_fields(key, data_type).alias("\0has_fields"),
        *([_text(rule.unit.bind(bound)).alias("\0unit")] if group.values is not None else ()),
    )  # fmt: skip
    valid = mapped.select(pl.col("\0has_fields") & (pl.col("key") != "") & ~_with_nul).to_series()
    if not valid.all():
        invalid = ~valid
        for row, record in zip(
            mapped.filter(invalid).iter_rows(named=True), scope.filter(invalid).iter_rows(named=True), strict=True
        ):
            bad.setdefault(row[ORDER], _reason(key, data_type, row["key"], record))
    mapped = mapped.filter(valid & mapped["value"].is_not_null())
    if group.values is None:
        return mapped
    fields = group.columns_of(rule.value.fields)
    return _converted(mapped, group.values, fields[0] if fields else "", bad).drop("\0unit")


def _converted(mapped: pl.DataFrame, rules: ValueRules, field: str, bad: dict[int, tuple[str, str]]) -> pl.DataFrame:
    """Return the entries with converted values; add the records with a refused value to ``bad``."""
    known: dict[tuple[str, str | None], str | None] = {}
    values: list[str | None] = []
    for value, unit, order in mapped.select("value", "\0unit", ORDER).iter_rows():
        try:
            if (value, unit) not in known:
                known[value, unit] = rules.convert(value, unit)
            values.append(known[value, unit])
        except ValueRefused as refused:
            values.append(None)
            bad.setdefault(order, (f"In '{field}': {refused}" if field else str(refused), field))
    converted = mapped.with_columns(pl.Series("value", values, dtype=pl.String))
    return converted.filter(pl.col("value").is_not_null())


def _key_pattern(parts: Iterable[Literal | Field], column: str, other: str) -> str:
    """Return a pattern of keys in which the group ``column`` is the column; ``column`` and ``other`` match fields."""
    pattern = ""
    for part in parts:
        if isinstance(part, Literal):
            pattern += re.escape(part.text)
        elif part.name != COLUMN:
            pattern += f"(?:{other})"
        else:
            pattern += "(?P=column)" if "(?P<column>" in pattern else f"(?P<column>{column})"
    return pattern


def _no_unit(name: str) -> str:
    return f"The mapping uses {{{name}}}, but the source has no such unit; set 'units_row: true' in its format."


def _no_column(name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else " Is it the right file, and the right mapping?"
    return f"There is no column '{name}'; the columns are {_listed(columns)}.{hint}"


def _hash_of_value(name: str, column: pl.Expr) -> pl.Expr:
    hashed = pl.struct(pl.lit(name).alias("name"), column.alias("value")).hash()
    return pl.when(column.is_not_null()).then(hashed).otherwise(pl.lit(0, dtype=pl.UInt64))


def _matches(template: Template, text: str) -> bool:
    """Return whether a template can result in ``text``; a field has at least one character."""
    pattern = "".join(re.escape(part.text) if isinstance(part, Literal) else "(?s:.+?)" for part in template.parts)
    return re.fullmatch(pattern, text) is not None


def _columns(records: pl.DataFrame, names: Iterable[str], facts: MappingOf[str, str]) -> list[pl.Expr]:
    """Return the named columns. A missing one is the fact of this name, such as ``units.mass``, or null."""
    existing = set(records.columns)
    return [
        column_named(name)
        if name in existing
        else pl.lit(facts.get(name) if name.startswith(_UNITS) else None, dtype=pl.String).alias(name)
        for name in names
    ]


def _text(template: Template) -> pl.Expr:
    """Return the template as a column of text; null if a field is null."""
    parts = [pl.lit(part.text) if isinstance(part, Literal) else column_named(part.name) for part in template.parts]
    if not parts:
        return pl.lit("")
    return parts[0] if len(parts) == 1 else pl.concat_str(parts)


def _has_fields(*templates: Template) -> pl.Expr:
    """Return whether a record has text in every field that the templates name."""
    names = [name for template in templates for name in template.fields]
    filled = [(column_named(name) != "").fill_null(value=False) for name in names]
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
