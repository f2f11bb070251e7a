"""The rules of one entry mapping, compiled to column expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingOf
from functools import cache, lru_cache
from typing import TypeAlias

import msgspec
import polars as pl

from ingestd.core.mapping.children import POSITION, ROW_HASH, record_fields
from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.conversion import ValueRefused, ValueRules
from ingestd.core.mapping.program import ORDER, VALUE, Program
from ingestd.core.mapping.specification import NO_RULES, EntrySpec, name_parts
from ingestd.core.normal_form import is_ascii
from ingestd.core.template import COLUMN, Field, Literal, Template, parse_template

FILE = "file."
FILE_PART = "file.part."
FILE_NAME = "file.name"
PREAMBLE = "file.preamble."
DEADBAND = "deadband"
"""The column with the dead-band of an entry."""
UNITS = "units."

_IN_ONE_THREAD = 2_000
"""The maximum number of records that are mapped without polars' threads. Under load, passing work to threads may take long."""

_RULES_IN_QUERY = 256
"""The maximum number of rules in one query. The time for each rule grows with the number of columns in the result."""

_ENTRY_COLUMNS = ["key", "value", "data_type", "row_hash", "position", ORDER, DEADBAND]

Faults: TypeAlias = dict[int, tuple[str, str]]
"""Why records are rejected: a sentence and a field, by the record's `ORDER`."""


class EntryRule(msgspec.Struct, frozen=True, kw_only=True):
    """The templates of one entry."""

    key: Template
    value: Template
    type: Template
    unit: Template

    @property
    def fields(self) -> tuple[str, ...]:
        """The names in the templates."""
        return tuple(name for part in (self.key, self.value, self.type, self.unit) for name in part.fields)

    @property
    def needed(self) -> tuple[str, ...]:
        """The fields without which a record is rejected."""
        return (*self.key.fields, *self.type.fields)


class RuleGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one specification.

    ``parts``: the pattern of the file's name. ``values``: the conversion of values. ``each``: the lists with the children to
    which the rules apply; empty: the rules apply to records. ``optional``: names that may be absent in all records.
    """

    rules: tuple[EntryRule, ...]
    program: Program | None
    parts: re.Pattern[str] | None
    values: ValueRules | None
    each: tuple[str, ...]
    deadband: str | None
    optional: frozenset[str]

    def columns_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the fields and facts from which ``names`` are computed."""
        if self.program is None:
            return tuple(names)
        return tuple(column for name in names for column in self.program.columns_of(name))

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields and facts that the rules and all expressions use. Expressions that no rule uses are computed, too."""
        used = tuple(name for rule in self.rules for name in self.columns_of(rule.fields))
        if self.program is None:
            return used
        where = self.program.where.columns if self.program.where is not None else ()
        return (*where, *used, *(name for output in self.program.outputs.values() for name in output.columns))

    @property
    def child_names(self) -> tuple[str, ...]:
        """The names that the rules use, except facts of the file: fields of a child, or of a child or record around it."""
        return tuple(name for name in self.columns if not name.startswith(FILE))

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The facts, and the fields of a record, that the rules use."""
        if not self.each:
            return self.columns
        facts = (name for name in self.columns if name.startswith((FILE, UNITS)))
        return (*record_fields(self.each, self.child_names), *facts)

    @property
    def required(self) -> tuple[str, ...]:
        """The names in `record_columns` that at least one record of a reading must have. For children, no unit is required."""
        names = tuple(name for name in self.columns if name not in self.optional)
        if not self.each:
            return names
        facts = tuple(name for name in names if name.startswith(FILE))
        list_field, *fields = record_fields(self.each, tuple(name for name in names if not name.startswith(FILE)))
        return (*([] if list_field in self.optional else [list_field]), *fields, *facts)

    @property
    def required_of_children(self) -> tuple[str, ...]:
        """The names in `child_names` that at least one child must have."""
        return tuple(name for name in self.child_names if name not in self.optional and not name.startswith(UNITS))

    def sources_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the facts, and the fields of a record, from which ``names`` of the rules are computed."""
        found = self.columns_of(names)
        return (*found, *record_fields(self.each, found)) if self.each else found

    def facts(self, facts: MappingOf[str, str]) -> dict[str, str]:
        """Return the facts of a file that the rules use, and the parts of its name."""
        known = {name: facts[name] for name in self.columns if name in facts and name.startswith(FILE)}
        found = self.parts.fullmatch(facts[FILE_NAME]) if self.parts is not None else None
        return known | ({f"{FILE_PART}{name}": text for name, text in found.groupdict().items()} if found else {})


def compile_group(spec: EntrySpec, program: Program | None, columns: Sequence[str]) -> RuleGroup:
    """Return the rules of a specification for a batch with these columns."""
    key, data_type = parse_template(spec.key), parse_template(spec.type)
    unit = parse_template(spec.rules.unit.source if spec.rules.unit is not None else "")
    rules: list[EntryRule] = []
    if spec.selection is not None:
        columns = spec.selection.of(columns, but=(*key.fields, *data_type.fields))
    else:
        columns = spec.columns
        if not columns:
            field = Template(text=spec.expression, parts=(Field(VALUE),)) if spec.expression is not None else None
            value = field or parse_template(spec.value or "")
            rules.append(EntryRule(key=key, value=value, type=data_type, unit=unit))
    types = {column: parse_template(text) for column, text in spec.types}
    for column in columns:
        bound = {COLUMN: column}
        rules.append(
            EntryRule(
                key=key.bind(bound),
                value=Template(text=f"{{{column}}}", parts=(Field(column),)),
                type=types.get(column, data_type).bind(bound),
                unit=unit.bind(bound),
            )
        )
    return RuleGroup(
        rules=tuple(rules),
        program=program,
        parts=name_parts(spec.file_name) if spec.file_name is not None else None,
        values=spec.rules if spec.rules != NO_RULES else None,
        each=spec.each,
        deadband=spec.deadband,
        optional=frozenset(spec.optional),
    )


def map_groups(
    groups: Iterable[RuleGroup], frame: pl.DataFrame, facts: MappingOf[str, str]
) -> tuple[pl.DataFrame, Faults]:
    """Return the entries of some records, with position and `ORDER`, and the faults of records by their `ORDER`.

    The result includes entries of records with faults.
    """
    parts: list[_RuleEntries] = []
    bad: Faults = {}
    for group in groups:
        bound = group.facts(facts)
        scope = frame
        if group.program is not None:
            scope, faulty = group.program.run(
                with_facts(frame, bound), [name for rule in group.rules for name in rule.fields]
            )
            bad = faulty | bad
        for start in range(0, len(group.rules), _RULES_IN_QUERY):
            parts += _evaluate(group, group.rules[start : start + _RULES_IN_QUERY], bound, scope)
    if not parts:
        return _no_entries(frame), bad
    entries = pl.concat([part.entries for part in parts])
    checks = _select(entries, _checks())
    valid, values, start = checks["valid"], [], 0
    for part in parts:
        values.append(part.values(valid[start : start + part.entries.height], bad))
        start += part.entries.height
    entries = entries[:, _ENTRY_COLUMNS]
    if any(part.conversion is not None for part in parts):
        entries.replace_column(_ENTRY_COLUMNS.index("value"), pl.concat(values))
    if entries["value"].null_count() or not valid.all():
        entries = entries.filter(valid, pl.col("value").is_not_null())
    if not checks["ascii"].all():
        entries = entries.with_columns(pl.col("key").str.normalize("NFC"))
    return entries if len(parts) == 1 else entries.sort(ORDER, maintain_order=True), bad


def name_keys(
    group: RuleGroup, frame: pl.DataFrame, facts: MappingOf[str, str], unknown: frozenset[str] = frozenset()
) -> pl.DataFrame:
    """Return the keys that the rules make from records, also from records that can't be mapped: key, row_hash, position.

    A key is null if it can't be computed. ``unknown``: fields with texts that the source could not read.
    """
    bound = group.facts(facts)
    keys = [rule.key.bind(bound) for rule in group.rules]
    scope = frame
    if group.program is not None:
        scope = group.program.name(with_facts(frame, bound), [name for key in keys for name in key.fields], unknown)
    found = []
    for key in keys:
        text = template_text(key)
        usable = _has_fields(key.fields) & (text != "") & ~text.str.contains("\0", literal=True)
        usable &= pl.lit(unknown.isdisjoint(group.sources_of(key.fields)))
        found.append(scope.select(pl.when(usable).then(text).alias("key"), *_of_record()))
    return pl.concat(found) if found else frame.clear().select(pl.lit("").alias("key"), *_of_record())


@cache  # a constant would import polars together with this module
def _of_record() -> tuple[pl.Expr, pl.Expr]:
    return pl.col(ROW_HASH).alias("row_hash"), pl.col(POSITION).alias("position")


@cache
def _checks() -> tuple[pl.Expr, pl.Expr]:
    """Return whether an entry is valid (a key, all fields of key and type, no U+0000), and whether all keys are ASCII."""
    # `count_matches` takes two thirds of the time of `contains`.
    has_nul = pl.any_horizontal(
        (pl.col("key", "value", "data_type").str.count_matches("\0", literal=True) > 0).fill_null(value=False)
    )
    return (pl.col("\0has_fields") & (pl.col("key") != "") & ~has_nul).alias("valid"), is_ascii("key").alias("ascii")


def _select(frame: pl.DataFrame, columns: Sequence[pl.Expr]) -> pl.DataFrame:
    return (frame.select_seq if frame.height <= _IN_ONE_THREAD else frame.select)(columns)


def _no_entries(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.clear().select(
        *(pl.lit("").alias(name) for name in ("key", "value", "data_type")),
        *_of_record(), pl.col(ORDER), pl.lit("").alias(DEADBAND),
    )  # fmt: skip


class _RuleEntries(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of one rule before their checks, one for each record of ``scope``.

    ``rule``: the rule, with facts replaced by their texts. ``field``: the field of the value; empty: the value has no field.
    """

    rule: EntryRule
    field: str
    conversion: ValueRules | None
    scope: pl.DataFrame
    entries: pl.DataFrame

    def values(self, valid: pl.Series, bad: Faults) -> pl.Series:
        """Return the converted values; add all rejected records to ``bad``, including records that are not ``valid``."""
        if not valid.all():
            records = self.scope.filter(~valid).iter_rows(named=True)
            for row, record in zip(self.entries.filter(~valid).iter_rows(named=True), records, strict=True):
                bad.setdefault(row[ORDER], fault_reason(self.rule.key, self.rule.type, row["key"], record))
        if self.conversion is None:
            return self.entries["value"]
        given = self.entries["value"] if valid.all() else self.entries["value"].set(~valid, None)
        return _converted(given, self.entries, self.conversion, self.field, bad)


def _evaluate(
    group: RuleGroup, given: Sequence[EntryRule], bound: MappingOf[str, str], scope: pl.DataFrame
) -> list[_RuleEntries]:
    """Return the entries that the ``given`` rules of a group make. One query computes all texts, each text once."""
    rules = [
        EntryRule(
            key=rule.key.bind(bound),
            value=rule.value.bind(bound),
            type=rule.type.bind(bound),
            unit=rule.unit.bind(bound),
        )
        for rule in given
    ]
    columns: dict[tuple[str, Template | tuple[str, ...]], pl.Expr] = {}
    parts: list[list[tuple[str, Template | tuple[str, ...]]]] = []
    for rule in rules:
        texts = [("key", rule.key), ("value", rule.value), ("data_type", rule.type), ("\0unit", rule.unit)]
        for text in texts:
            if text not in columns:
                columns[text] = template_text(text[1])
        fields = ("\0has_fields", rule.needed)
        if fields not in columns:
            columns[fields] = _has_fields(rule.needed)
        parts.append([*texts, fields])
    names = {column: str(number) for number, column in enumerate(columns)}
    same = [*_of_record(), pl.col(ORDER), pl.lit(group.deadband, dtype=pl.String).alias(DEADBAND)]
    frame = _select(scope, [*same, *(one.alias(names[column]) for column, one in columns.items())])
    common = frame.columns[: len(same)]
    found: list[_RuleEntries] = []
    for rule, unbound, part in zip(rules, given, parts, strict=True):
        # A frame is used instead of series, because a frame stores a text only once if all records have the same text.
        entries = frame[:, [*common, *(names[column] for column in part)]]
        entries.columns = [*common, *(name for name, _ in part)]
        field = next(iter(group.columns_of(unbound.value.fields)), "")
        found.append(_RuleEntries(rule=rule, field=field, conversion=group.values, scope=scope, entries=entries))
    return found


def _converted(given: pl.Series, entries: pl.DataFrame, rules: ValueRules, field: str, bad: Faults) -> pl.Series:
    """Convert the ``given`` values of entries; add each record with a refused value to ``bad``."""
    known: dict[tuple[str, str | None], str | None] = {}
    values: list[str | None] = []
    for value, unit, order in zip(given, entries["\0unit"], entries[ORDER], strict=True):
        converted = None
        if value is not None:
            try:
                if (value, unit) not in known:
                    known[value, unit] = rules.convert(value, unit)
                converted = known[value, unit]
            except ValueRefused as refused:
                bad.setdefault(order, refusal_reason(refused, field))
        values.append(converted)
    return pl.Series("value", values, dtype=pl.String)


def with_facts(frame: pl.DataFrame, bound: MappingOf[str, str]) -> pl.DataFrame:
    """Return a frame with a column for each fact."""
    return frame.with_columns([pl.lit(text).alias(name) for name, text in bound.items()])


@lru_cache(maxsize=1024)
def template_text(template: Template) -> pl.Expr:
    """Return the template as a column of text; null if a field is null."""
    parts = [pl.lit(part.text) if isinstance(part, Literal) else column_named(part.name) for part in template.parts]
    if not parts:
        return pl.lit("")
    return parts[0] if len(parts) == 1 else pl.concat_str(parts)


@lru_cache(maxsize=1024)
def _has_fields(names: tuple[str, ...]) -> pl.Expr:
    """Return whether a record has text in every field."""
    filled = [(column_named(name) != "").fill_null(value=False) for name in names]
    return pl.all_horizontal(filled) if filled else pl.lit(value=True)


def refusal_reason(refused: ValueRefused, field: str) -> tuple[str, str]:
    """Return why a record with a refused value is rejected, and the field of the value; empty: the value has no field."""
    return f"In '{field}': {refused}" if field else str(refused), field


def fault_reason(
    key: Template, data_type: Template, made: str | None, record: MappingOf[str, object]
) -> tuple[str, str]:
    """Return why a record without key or type, or with U+0000, is rejected, and the field. ``made``: the record's key."""
    for template, use in ((key, "key"), (data_type, "type")):
        for name in template.fields:
            if record[name] is None:
                return f"The record has no '{name}', which the {use} '{template.text}' needs.", name
            if record[name] == "":
                return f"'{name}' is empty; the {use} '{template.text}' needs it.", name
    if made:
        return "The record contains the character U+0000, which no entry can contain.", ""
    return f"The key '{key.text}' is empty.", key.fields[0] if key.fields else ""
