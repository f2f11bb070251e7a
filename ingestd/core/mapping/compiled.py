"""The mapping from records to entries, compiled to column expressions. Performs no I/O.

Without rules for values, a value is the exact text of the record: it is not parsed, rounded or trimmed.

* A record is rejected if a field of its *key* or *type* is null or empty, or if its key is empty, because its entry is unknown.
* A key is in the Unicode form NFC, as the service stores it. Keys that differ only in their Unicode form are the same key.
* If a field of its *value* is null, a record makes no entry and is counted. Empty text is a value and makes an entry.
* A record with the character U+0000 in its key, value or type is rejected, because services and databases do not accept it.
* If the mapping names a field that no record of a reading has, the reading is rejected: `ingestd.core.mapping.absent_fields`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingOf
from functools import cached_property

import msgspec
import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.absent_fields import OPTIONAL, AbsentField, no_preamble_sentence, no_unit_sentence
from ingestd.core.mapping.batch_rules import BatchRules, UsedNames
from ingestd.core.mapping.children import LIST, POSITION, ROW_HASH
from ingestd.core.mapping.column import listed, no_column_sentence
from ingestd.core.mapping.key_pattern import can_make, columns_in
from ingestd.core.mapping.mapped import Mapped, NamedEntries, PreparedBatch, divide, rejects_of
from ingestd.core.mapping.mapped_children import expand_children, map_children
from ingestd.core.mapping.program import ORDER, compile_program
from ingestd.core.mapping.record_columns import column_texts, list_column, missing_facts
from ingestd.core.mapping.row_hashes import hash_rows, polars_version
from ingestd.core.mapping.rule_group import (
    DEADBAND,
    FILE,
    FILE_NAME,
    PREAMBLE,
    UNITS,
    compile_group,
    map_groups,
    name_keys,
    with_facts,
)
from ingestd.core.mapping.specification import EntrySpec, Table, TableSource
from ingestd.core.mapping.steps import RecordSteps, find_entry
from ingestd.core.record import Batch, position_at, position_text
from ingestd.core.template import COLUMN, parse_template

_ENTRY_TEXTS = ("key", "value", "data_type")
_ALWAYS = ("key", "value", "columns", "type")
"""The members of a specification that are always part of the digest. Other members are part of it only if they are set."""


class Mapping:
    """Compiled entry specifications that map batches of records. Immutable, except for the cached rules of the latest batch."""

    def __init__(self, specs: Iterable[EntrySpec], tables: MappingOf[TableSource, Table] | None = None) -> None:
        """Compile ``specs``. A lookup table that is missing in ``tables`` is empty.

        Raises:
            TemplateError: a template has a syntax error.
        """
        self._specs = tuple(specs)
        self._tables = {source: dict(tables[source]) for source in self.table_sources} if tables else {}
        self._programs = tuple(compile_program(spec, self._tables) for spec in self._specs)
        self._dynamic = any(spec.selection is not None for spec in self._specs)
        self._extra = (DEADBAND,) if any(spec.deadband is not None for spec in self._specs) else ()
        self._each = tuple(dict.fromkeys(spec.each for spec in self._specs if spec.each))
        self._lists = tuple(dict.fromkeys(each[0] for each in self._each))
        self._rules = self._latest = self._compile(())
        """``_rules``: the rules without columns of selections. ``_latest``: the rules for the columns of the latest batch."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a record that the mapping uses. If only other fields change, the record counts as unchanged.

        Columns that a selection finds in a batch are used, too, but not included here.
        """
        return self._rules.used.fields

    @property
    def names(self) -> frozenset[str]:
        """The fields, facts, lists and globs that the mapping names."""
        names = {name for group in self._rules.groups for name in (*group.columns, *group.each)}
        for spec in self._specs:
            if spec.selection is not None:  # its rules depend on the columns of a batch
                names |= {*spec.selection.match, *spec.selection.excluded}
                names |= {*parse_template(spec.key).fields, *parse_template(spec.type).fields} - {COLUMN}
        return frozenset(names)

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
        return self._rules.used.facts

    def columns_of(self, key: str, member: str = "value") -> tuple[str, ...]:
        """Return the columns from which a member of the entry ``key`` is made; empty if they are unknown.

        ``member``: ``key``, ``value`` or ``dataType``. If several templates can make the key, the result has the columns of
        all these templates.
        """
        rules = self._compile(self._selected(key)) if self._dynamic else self._rules
        names: list[str] = []
        for group in rules.groups:
            for rule in group.rules:
                if can_make(rule.key, key):
                    template = {"key": rule.key, "dataType": rule.type}.get(member, rule.value)
                    names += group.columns_of(template.fields)
        return tuple(dict.fromkeys(name for name in names if not name.startswith(FILE)))

    @cached_property
    def digest(self) -> str:
        """A digest of specifications, tables and the version of polars. Only readings with equal digests are compared."""
        unset = {member.name: member.default for member in msgspec.structs.fields(EntrySpec)}
        specs = [
            {
                name: value
                for name, value in msgspec.to_builtins(spec).items()
                if name in _ALWAYS or getattr(spec, name) != unset[name]
            }
            for spec in self._specs
        ]
        tables = [sorted(self._tables[source].items()) for source in self._tables]
        content = [specs, polars_version(), *([tables] if tables else [])]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def row_hashes(self, records: pl.DataFrame, facts: MappingOf[str, str]) -> pl.Series:
        """Return a 64-bit hash (``pl.UInt64``) of the used fields and facts of each record.

        Polars may hash differently in another version, so its version is part of `digest`.
        """
        used = self._rules_for(records.columns).used
        return hash_rows(records, used, facts, lists=self._lists, may_lack_columns=self._dynamic)

    def map_together(self, batches: Sequence[Batch]) -> list[PreparedBatch | None]:
        """Return the results of `row_hashes` and `apply` for each batch that has the same columns as another batch; else None.

        Batches with the same columns are mapped together, which takes little more time than mapping one batch. The result is
        also None for a batch that is empty or lacks a column, and for a mapping that uses facts or lists.
        """
        same: dict[tuple[str, ...], list[int]] = {}
        is_plain = not self._each and all(group.parts is None for group in self._rules.groups)
        for number, batch in enumerate(batches if is_plain else ()):
            columns = batch.records.columns
            names = self._rules_for(columns).used
            if batch.records.height and not names.facts and all(name in columns for name in names.fields):
                same.setdefault(tuple(columns), []).append(number)
        prepared: list[PreparedBatch | None] = [None] * len(batches)
        for numbers in same.values():
            if len(numbers) == 1:
                continue
            records = pl.concat([batches[number].records for number in numbers])
            hashes = self.row_hashes(records, {})
            mapped = self.apply(records, pl.int_range(records.height, dtype=pl.Int64, eager=True), hashes, {})
            parts = divide(mapped, [batches[number].positions for number in numbers])
            start = 0
            for number, part in zip(numbers, parts, strict=True):
                end = start + batches[number].records.height
                prepared[number] = PreparedBatch(hashes=hashes[start:end], mapped=part)
                start = end
        return prepared

    def check_facts(self, batch: Batch) -> None:
        """See `NamesFields.check_facts`. Also check that the file's name has the form ``file_name`` of each specification."""
        for name in self._rules.required.facts:
            if name.startswith(PREAMBLE) and name not in batch.facts:
                raise SourceBroken(no_preamble_sentence(name, batch.facts))
            if name not in batch.facts:
                raise SourceBroken(
                    f"The mapping uses {{{name}}}, but the source provides only {listed(batch.facts)}. {OPTIONAL}"
                )
        for spec, group in zip(self._specs, self._rules.groups, strict=True):
            if group.parts is not None and not group.parts.fullmatch(batch.facts.get(FILE_NAME, "")):
                raise SourceBroken(
                    f"The file's name '{batch.facts.get(FILE_NAME, '')}' does not have the form '{spec.file_name}' (file_name)."
                )

    def absent_among(self, columns: Sequence[str], facts: MappingOf[str, str]) -> tuple[str, ...]:
        """See `NamesFields.absent_among`; a glob that selects no column is absent, too."""
        existing = {*columns, *facts}
        rules = self._rules_for(columns)
        names = [name for name in rules.required.fields if name not in existing]
        # If a record has an object instead of a list, only this record is rejected.
        objects = [name for name in self._lists if any(column.startswith(f"{name}.") for column in columns)]
        absent = [name for name in names if name not in objects]
        for spec, group in zip(self._specs, rules.groups, strict=True):
            if spec.selection is not None:
                globs = [name for name in spec.selection.excluded if not spec.selection.excludes(name, columns)]
                globs += spec.selection.match if not group.rules else ()
                absent += [name for name in globs if name not in spec.optional]
        return tuple(dict.fromkeys(absent))

    def absent_sentence(self, name: str, columns: Sequence[str], *, header: bool) -> str:
        """See `NamesFields.absent_sentence`."""
        if name.startswith(UNITS):
            return no_unit_sentence(name)
        if any(spec.selection is not None and name in spec.selection.match for spec in self._specs):
            return f"The mapping selects none of the columns {listed(columns)} (columns: {name}). {OPTIONAL}"
        return f"{no_column_sentence(name, columns, header=header)} {OPTIONAL}"

    def fields_among(self, columns: Sequence[str]) -> tuple[str, ...]:
        """See `ingestd.core.unreadable.UsesColumns`; columns that a selection finds are used, too."""
        return self._rules_for(columns).used.fields

    def empty_entries(self, position: pl.DataType) -> pl.DataFrame:
        """Return an empty frame with the columns of the entries of `apply`."""
        texts, extra = (dict.fromkeys(names, pl.String) for names in (_ENTRY_TEXTS, self._extra))
        return pl.DataFrame(schema={**texts, "row_hash": pl.UInt64, **extra, "position": position})

    def apply(
        self, records: pl.DataFrame, positions: pl.Series, hashes: pl.Series, facts: MappingOf[str, str]
    ) -> Mapped:
        """Return the entries and rejects of some records. The first three arguments have the same height."""
        if not records.height:
            return Mapped(entries=self.empty_entries(positions.dtype), rejects=())
        rules = self._rules_for(records.columns)
        groups, frame = rules.groups, self._frame(records, positions, hashes, facts, rules.used)
        entries, bad = map_groups([group for group in groups if not group.each], frame, facts)
        children = [map_children(each, groups, frame, facts) for each in self._each]
        for one in children:
            bad = one.record_faults | bad
        if children:
            entries = entries.with_columns(position_text(entries["position"]))
            entries = pl.concat([entries, *(one.entries for one in children)]).sort(ORDER, maintain_order=True)
        if bad:
            # A record is mapped or rejected as a whole. If only a part of its entries were sent, the sink would have a state
            # that the source never had.
            entries = entries.filter(~pl.col(ORDER).is_in(list(bad)))
        found = [(order, position_at(positions, order), *fault) for order, fault in bad.items()]
        found += [one for child in children for one in child.rejected if one[0] not in bad]
        results = pl.concat([entries[ORDER], pl.Series([order for order, *_ in found], dtype=pl.Int64)])
        return Mapped(
            entries=entries[:, list(self._members)],
            valueless=records.height - results.n_unique(),
            rejects=tuple(rejects_of(found, records, hashes)),
            child_fields={
                (each, name): is_present
                for each, one in zip(self._each, children, strict=True)
                for name, is_present in one.fields.items()
            },
        )

    def count_excluded(self, records: pl.DataFrame, facts: MappingOf[str, str]) -> int:
        """Return the number of records that every ``where`` of the mapping excludes; 0 if an entry mapping has no ``where``."""
        rules = self._rules_for(records.columns)
        groups = rules.groups
        programs = [group.program for group in groups if group.program is not None and not group.each]
        if len(programs) < len(groups) or any(program.where is None for program in programs):
            return 0
        nothing = pl.repeat(0, records.height, dtype=pl.Int64, eager=True)
        frame = self._frame(records, nothing, nothing, facts, rules.used)
        scopes = (
            program.run(with_facts(frame, group.facts(facts)), ())[0]
            for group, program in zip(groups, programs, strict=True)
        )
        return records.height - pl.concat([scope[ORDER] for scope in scopes]).n_unique()

    @property
    def value_names(self) -> tuple[str, ...]:
        """The fields from which values are made, and the lists of children."""
        names = (
            name for group in self._rules.groups for rule in group.rules for name in group.columns_of(rule.value.fields)
        )
        return tuple(dict.fromkeys([*self._lists, *(name for name in names if not name.startswith(FILE))]))

    def reject_all(self, records: pl.DataFrame, positions: pl.Series, hashes: pl.Series, absent: AbsentField) -> Mapped:
        """Return a result that rejects all records, because they lack the field ``absent``. See `apply`."""
        found = [
            (order, position_at(positions, order), absent.sentence, absent.name) for order in range(records.height)
        ]
        return Mapped(entries=self.empty_entries(positions.dtype), rejects=tuple(rejects_of(found, records, hashes)))

    def name_entries(
        self,
        records: pl.DataFrame,
        positions: pl.Series,
        hashes: pl.Series,
        facts: MappingOf[str, str],
        *,
        unknown: frozenset[str] = frozenset(),
    ) -> NamedEntries:
        """Return the entries of rejected records with known keys, without values. The first three arguments have equal height.

        ``unknown``: fields with texts that the source could not read.
        """
        rules = self._rules_for(records.columns)
        groups, frame = rules.groups, self._frame(records, positions, hashes, facts, rules.used)
        found = [name_keys(group, frame, facts, unknown) for group in groups if not group.each]
        is_complete = True
        for each in self._each:
            expanded = expand_children(each, groups, frame, facts)
            children, faults = expanded.frame, expanded.faults
            has_list = not unknown or (each[0] in records.columns and each[0] not in unknown)
            is_complete = is_complete and has_list and not faults
            found += [name_keys(group, children, facts, unknown) for group in groups if group.each == each]
        if self._each:
            found = [one.with_columns(position_text(one["position"])) for one in found]
        named = pl.concat(found)
        nothing = pl.lit(None, dtype=pl.String)
        entries = named.filter(pl.col("key").is_not_null()).with_columns(
            nothing.alias("value"), pl.lit("").alias("data_type"), *(nothing.alias(name) for name in self._extra)
        )
        return NamedEntries(
            entries=entries[:, list(self._members)], is_complete=is_complete and not named["key"].null_count()
        )

    @property
    def _members(self) -> tuple[str, ...]:
        return (*_ENTRY_TEXTS, "row_hash", *self._extra, "position")

    def steps(self, record: pl.DataFrame, facts: MappingOf[str, str], key: str) -> RecordSteps | None:
        """Return the steps from one record (one row) to the entry ``key`` (in NFC).

        None if no template makes this key from the record or its children.
        """
        nothing = pl.Series([0], dtype=pl.Int64)
        rules = self._rules_for(record.columns)
        groups, frame = rules.groups, self._frame(record, nothing, nothing, facts, rules.used)
        children = {each: expand_children(each, groups, frame, facts).frame for each in self._each}
        found = None
        for spec, group in zip(self._specs, groups, strict=True):
            made = find_entry(spec, group, children.get(group.each, frame), group.facts(facts), key)
            found = made if made is not None else found  # the last of several equal keys is valid
        if found is None:
            return None
        entry = self.apply(record, nothing, nothing, facts)
        made_entries = entry.entries.filter(pl.col("key") == key)
        return RecordSteps(
            record=found.record,
            facts=found.facts,
            steps=found.steps,
            value=made_entries["value"][-1] if made_entries.height else None,
            data_type=made_entries["data_type"][-1] if made_entries.height else "",
            refusal=entry.rejects[0][0].reason if entry.rejects else "",
        )

    def _frame(
        self,
        records: pl.DataFrame,
        positions: pl.Series,
        hashes: pl.Series,
        facts: MappingOf[str, str],
        used: UsedNames,
    ) -> pl.DataFrame:
        """Return the columns that the mapping uses, and the position, row hash and order of each record."""
        frame = pl.DataFrame(
            [
                *column_texts(records, used.fields, facts),
                *missing_facts(records.height, used.facts, facts),
                positions.alias(POSITION),
                hashes.alias(ROW_HASH),
                pl.int_range(records.height, dtype=pl.Int64, eager=True).alias(ORDER),
            ]
        )
        lists = [list_column(records, name).alias(f"{LIST}{name}") for name in self._lists]
        return frame.hstack(records.select(lists)) if lists else frame

    def _rules_for(self, columns: Sequence[str]) -> BatchRules:
        """Return the rules for these columns. They are cached, because most batches have the columns of the previous batch."""
        if not self._dynamic:
            return self._rules
        rules = self._latest
        if rules.columns != tuple(columns):
            rules = self._latest = self._compile(columns)
        return rules

    def _compile(self, columns: Sequence[str]) -> BatchRules:
        return BatchRules.of(
            columns,
            (compile_group(spec, program, columns) for spec, program in zip(self._specs, self._programs, strict=True)),
        )

    def _selected(self, key: str) -> tuple[str, ...]:
        """Return the columns that the entry's ``key`` may name, if a specification with a selection made it."""
        selections = (parse_template(spec.key) for spec in self._specs if spec.selection is not None)
        return tuple(dict.fromkeys(column for template in selections for column in columns_in(template, key)))
