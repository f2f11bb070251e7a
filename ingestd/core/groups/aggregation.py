"""Groups the records of a partition. Each record becomes a state; the merged states of a group become one record.

A *state* is a row about some records of one group: their sums, counts and chosen texts. `Aggregation.merge` merges the given
states of each group, so a large partition can be merged in parts. The states of a group must be merged in the order of the
records. The result does not depend on the division of the records into batches.

A group with a rejected record is rejected, because its aggregates would lack this record. A rejected record without a known
group may belong to any group, so it rejects the whole partition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingOf

import msgspec
import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.groups.operand import EXPECTED, SCALE, mean_text, read_operands, sum_text
from ingestd.core.groups.specification import AggregateSpec, Comparison, GroupSpec
from ingestd.core.mapping.absent_fields import OPTIONAL
from ingestd.core.mapping.column import column_named, no_column_sentence
from ingestd.core.mapping.program import ORDER, compile_program
from ingestd.core.mapping.specification import EntrySpec
from ingestd.core.mapping.typed import any_fault
from ingestd.core.record import Batch, Reject, located_reason, location_text, position_at

_FACT = "file."
_UNITS = "units."
_ROWS, _FIRST, _LAST, _REASON, _REJECTED = "\0rows", "\0first", "\0last", "\0reason", "\0rejected"


class GroupedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Groups as records. ``positions``: the location of each group, as text. ``rejects``: the rejected groups."""

    records: pl.DataFrame
    positions: pl.Series
    rejects: tuple[Reject, ...]


class _Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate, and the names of its columns in a state."""

    name: str
    spec: AggregateSpec

    def column(self, part: str) -> str:
        return f"\0{part}\0{self.name}"

    @property
    def sums(self) -> bool:
        return self.spec.function in {"sum", "mean"}

    def merged(self) -> list[pl.Expr]:
        """Return the expressions that merge the columns of several states of one group."""
        if self.spec.function == "count" or self.sums:
            parts = ("high", "low", "count") if self.sums else ("count",)
            return [pl.col(self.column(part)).sum() for part in parts]
        text, is_last = pl.col(self.column("text")), self.spec.function == "last"
        if self.spec.compares is None:
            known = text.drop_nulls()
            return [known.last() if is_last else known.first()]
        compared = pl.col(self.column("compared"))
        best = compared.max() if self.spec.function in {"max", "last"} else compared.min()
        chosen = text.filter(compared == best)
        return [best, chosen.last() if is_last else chosen.first()]

    def result(self, states: pl.DataFrame) -> pl.Series:
        """Return the text of the aggregate for each group; null if no record of the group has a value."""
        if self.spec.function == "count":
            return states[self.column("count")].cast(pl.String).alias(self.name)
        if not self.sums:
            return states[self.column("text")].alias(self.name)
        rows = states.select(self.column("high"), self.column("low"), self.column("count")).iter_rows()
        mean = self.spec.function == "mean"
        texts = [
            None
            if not count
            else mean_text(high * SCALE + low, count, self.spec.decimals)
            if mean
            else sum_text(high * SCALE + low)
            for high, low, count in rows
        ]
        return pl.Series(self.name, texts, dtype=pl.String)


class Aggregation:
    """A compiled group stage. Immutable."""

    def __init__(self, spec: GroupSpec) -> None:
        """Compile ``spec``.

        Raises:
            ExpressionError: an expression can't be compiled.
        """
        self.spec = spec
        self._program = compile_program(EntrySpec(key="", where=spec.where, let=spec.let), {})
        self._aggregates = tuple(_Aggregate(name=name, spec=one) for name, one in spec.take)
        used = (*spec.by, *(name for one in self._aggregates for name in (one.spec.field, one.spec.order) if name))
        self._used = tuple(dict.fromkeys(used))
        where = self._program.where.columns if self._program is not None and self._program.where is not None else ()
        self.sources = self._sources_of((*where, *self._used))
        """The fields and facts of the source that the stage uses."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts of a batch that the stage uses, such as ``file.stem``."""
        return tuple(name for name in self.sources if name.startswith(_FACT))

    def fields_among(self, columns: Sequence[str]) -> tuple[str, ...]:
        """See `ingestd.core.unreadable.UsesColumns`."""
        return tuple(name for name in self.sources if name in columns)

    def digest_with(self, mapping: str) -> str:
        """Return a digest of the mapping's digest and this group stage. If it changes, the whole source is read again."""
        spec = msgspec.to_builtins(self.spec)
        if not self.spec.optional:  # so the digest equals that of versions without this member
            del spec["optional"]
        text = json.dumps([mapping, spec], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def check_facts(self, batch: Batch) -> None:
        """See `ingestd.core.mapping.absent_fields.NamesFields`."""
        for name in self.sources:
            if name.startswith((_FACT, _UNITS)) and name not in batch.facts and name not in self.spec.optional:
                raise SourceBroken(self.absent_sentence(name, batch.records.columns, header=True))

    def absent_among(self, columns: Sequence[str], facts: MappingOf[str, str]) -> tuple[str, ...]:
        """See `ingestd.core.mapping.absent_fields.NamesFields`."""
        known = {*columns, *facts, *self.spec.optional}
        return tuple(name for name in self.sources if name not in known)

    def absent_sentence(self, name: str, columns: Sequence[str], *, header: bool) -> str:
        """See `ingestd.core.mapping.absent_fields.NamesFields`."""
        return f"{no_column_sentence(name, columns, header=header)} {OPTIONAL}"

    def states(self, batch: Batch) -> tuple[pl.DataFrame, tuple[Reject, ...]]:
        """Return a state for each record, in the order of the records, and the rejected records.

        The rejected records include the rejects of the batch. A rejected record with a known group has a state, too.

        Raises:
            SourceBroken: the group of a rejected record is unknown.
        """
        rejects = RowRejects(batch)
        frame = self._included(self._frame(batch.records, batch.positions, batch.facts), rejects)
        for name in self.spec.by:
            for order in frame.filter(~_is_filled(name))[ORDER]:
                rejects.add(order, f"The record has no '{name}', which its group needs.", name)
        frame = frame.filter(pl.all_horizontal(_is_filled(name) for name in self.spec.by))
        rejects.names_group = True
        columns = [column for one in self._aggregates for column in self._operands(one, frame, rejects)]
        states = self._stated(frame, rejects.reasons).with_columns(columns)
        found = (*batch.rejects, *rejects.in_order())
        if batch.rejects:
            states = pl.concat([self._stated_rejects(batch), states], how="diagonal").select(states.columns)
            if batch.positions.dtype == pl.Int64:
                states = states.sort(pl.col(_FIRST).cast(pl.Int64, strict=False), maintain_order=True)
        return states, found

    def count_rejected(self, states: pl.DataFrame) -> int:
        """Return how many rejected records belong to the groups of ``states``."""
        return int(states[_REJECTED].sum())

    def merge(self, states: pl.DataFrame) -> pl.DataFrame:
        """Merge the states of each group into one state. The groups are in the order of their first records."""
        return states.group_by(list(self.spec.by), maintain_order=True).agg(
            pl.col(_ROWS).sum(),
            pl.col(_FIRST).drop_nulls().first(),
            pl.col(_LAST).drop_nulls().last(),
            pl.col(_REASON).drop_nulls().first(),
            pl.col(_REJECTED).sum(),
            *(column for one in self._aggregates for column in one.merged()),
        )

    def records(self, states: pl.DataFrame, *, numbered: bool) -> GroupedRecords:
        """Return merged states as records, or as rejects if a record is rejected. ``numbered``: positions are row numbers."""
        bad = states[_REJECTED] > 0
        good = states.filter(~bad)
        fields = [good[name] for name in self.spec.by] + [one.result(good) for one in self._aggregates]
        rejects = tuple(
            Reject(
                position=position,
                reason=group_reason(row[_REASON], row[_REJECTED]),
                record={name: row[name] for name in self.spec.by},
            )
            for row, position in zip(
                states.filter(bad).iter_rows(named=True), _locations(states.filter(bad), numbered=numbered), strict=True
            )
        )
        return GroupedRecords(
            records=pl.DataFrame(fields), positions=_locations(good, numbered=numbered), rejects=rejects
        )

    def _sources_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the fields and facts of the source from which ``names`` are computed."""
        program = self._program
        found = (source for name in names for source in (program.columns_of(name) if program is not None else (name,)))
        return tuple(dict.fromkeys(found))

    def _frame(self, records: pl.DataFrame, positions: pl.Series, facts: MappingOf[str, str]) -> pl.DataFrame:
        existing = [name for name in self.sources if name in records.columns]
        frame = positions.cast(pl.String).to_frame(_FIRST).hstack([records[name] for name in existing])
        frame = frame.with_columns(
            pl.int_range(pl.len(), dtype=pl.Int64).alias(ORDER),
            *(
                pl.lit(facts.get(name), dtype=pl.String).alias(name)
                for name in self.sources
                if name not in records.columns
            ),
        )
        for step in self._program.steps if self._program is not None else ():
            frame = frame.with_columns(step)
        return frame

    def _included(self, frame: pl.DataFrame, rejects: RowRejects) -> pl.DataFrame:
        """Return the records for which ``where`` is true or has a fault, with the texts of ``let``.

        Raises:
            SourceBroken: the group of a record can't be computed.
        """
        program = self._program
        if program is None:
            return frame
        outputs = {name: program.outputs[name] for name in self._used if name in program.outputs}
        faults = [fault for output in outputs.values() for fault in output.faults]
        of_group = [fault for name in self.spec.by if name in outputs for fault in outputs[name].faults]
        if program.where is not None:
            included = program.where.expr.fill_null(value=False)
            frame = frame.filter(included | any_fault(program.where.faults))
            faults = [*program.where.faults, *faults]
        rejects.names_group = True
        for fault in faults:
            for record in frame.filter(fault.bad.fill_null(value=False)).iter_rows(named=True):
                reason, field = fault.reason(record), fault.columns[0] if fault.columns else ""
                if any(fault is one for one in of_group):
                    raise SourceBroken(unknown_group(rejects.place(record[ORDER]), reason))
                rejects.add(record[ORDER], reason, field)
        rejects.names_group = False
        return frame.with_columns([output.text().alias(name) for name, output in outputs.items()])

    def _stated(self, frame: pl.DataFrame, reasons: MappingOf[int, str]) -> pl.DataFrame:
        """Return states without the columns of aggregates. ``reasons``: the reasons of rejected records, by their `ORDER`."""
        known = pl.col(ORDER).replace_strict(reasons, default=None, return_dtype=pl.String) if reasons else pl.lit(None)
        return frame.select(
            *map(column_named, self.spec.by),
            pl.lit(1, dtype=pl.Int64).alias(_ROWS),
            pl.col(_FIRST),
            pl.col(_FIRST).alias(_LAST),
            known.cast(pl.String).alias(_REASON),
        ).with_columns(pl.col(_REASON).is_not_null().cast(pl.Int64).alias(_REJECTED))

    def _stated_rejects(self, batch: Batch) -> pl.DataFrame:
        """Return states of the records that the connector or the contract has rejected, without the columns of aggregates.

        The group of a rejected record is known only if the reason is about one field that does not name the group.
        Otherwise the record's texts may be in wrong fields, for example in a line with a surplus separator.

        Raises:
            SourceBroken: the group of one of these records is unknown.
        """
        keys = [name for name in self._sources_of(self.spec.by) if name not in batch.facts]
        for found in batch.rejects:
            if not found.field or found.field in keys or any(name not in found.record for name in keys):
                raise SourceBroken(unknown_group(location_text(found.position), found.reason))
        columns = {name: [found.record.get(name) for found in batch.rejects] for name in self.sources}
        records = pl.DataFrame(
            {name: texts for name, texts in columns.items() if name not in batch.facts},
            schema_overrides=dict.fromkeys((name for name in columns if name not in batch.facts), pl.String),
        )
        positions = pl.Series([str(found.position) for found in batch.rejects], dtype=pl.String)
        frame = self._frame(records, positions, batch.facts)
        outputs = self._program.outputs if self._program is not None else {}
        frame = frame.with_columns([outputs[name].text().alias(name) for name in self.spec.by if name in outputs])
        frame = frame.filter(pl.all_horizontal(_is_filled(name) for name in self.spec.by))
        return self._stated(frame, {order: located_reason(found) for order, found in enumerate(batch.rejects)})

    def _operands(self, one: _Aggregate, frame: pl.DataFrame, rejects: RowRejects) -> list[pl.Series]:
        """Return the columns of an aggregate in the states of single records; reject records with unusable values."""
        spec = one.spec
        if spec.field is None:
            return [pl.repeat(1, frame.height, dtype=pl.Int64, eager=True).alias(one.column("count"))]
        texts = _values(frame, spec.field)
        if spec.function == "count":
            return [texts.is_not_null().cast(pl.Int64).alias(one.column("count"))]
        if one.sums:
            numbers = _read(frame, spec.field, texts, "number", rejects).to_frame("all")
            limb = pl.lit(SCALE, dtype=pl.Int128)
            limbs = numbers.select(
                (pl.col("all") // limb).alias(one.column("high")),
                pl.col("all").mod(limb).alias(one.column("low")),
                pl.col("all").is_not_null().cast(pl.Int64).alias(one.column("count")),
            )
            return limbs.get_columns()
        if spec.compares is None:
            return [texts.alias(one.column("text"))]
        by = _values(frame, spec.compares)
        for order in frame[ORDER].filter(texts.is_not_null() & by.is_null()):
            rejects.add(
                order, f"The record has no '{spec.compares}', which orders the values of '{spec.field}'.", spec.compares
            )
        compared = _read(frame, spec.compares, by, spec.compared, rejects).to_frame("all")
        with_text = compared.select(pl.when(texts.is_not_null()).then(pl.col("all"))).to_series()
        return [with_text.alias(one.column("compared")), texts.alias(one.column("text"))]


def _is_filled(name: str) -> pl.Expr:
    return (column_named(name) != "").fill_null(value=False)


def _values(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the texts of a field; null for an empty text."""
    return frame.select(pl.when(_is_filled(name)).then(column_named(name))).to_series()


def _read(frame: pl.DataFrame, name: str, texts: pl.Series, compared: Comparison, rejects: RowRejects) -> pl.Series:
    """Return the texts as operands of the comparison; reject each record with a text that can't be compared."""
    operands = read_operands(texts, compared)
    for at in (texts.is_not_null() & operands.is_null()).arg_true():
        sentence = f"'{name}' is used as {EXPECTED[compared]}. Here '{name}' is '{texts[at]}'."
        rejects.add(frame[ORDER][at], sentence, name)
    return operands


def _locations(states: pl.DataFrame, *, numbered: bool) -> pl.Series:
    """Return the location of each group: its first position, its last position, and its number of records."""
    word, one = ("rows ", "row ") if numbered else ("", "")
    count = pl.col(_ROWS).cast(pl.String)
    several = [pl.lit(word), pl.col(_FIRST), pl.lit(" to "), pl.col(_LAST), pl.lit(" ("), count]
    unit = pl.lit(" rows)" if numbered else " records)")
    return states.select(
        pl.when(pl.col(_ROWS) > 1)
        .then(pl.concat_str(*several, unit))
        .otherwise(pl.concat_str(pl.lit(one), pl.col(_FIRST)))
        .alias("position")
    ).to_series()


class RowRejects(msgspec.Struct):
    """The rejected records of a batch. ``names_group``: True while the groups of the records to `add` are known.

    ``reasons``: the reasons of the records with a known group, by their row in the batch.
    """

    batch: Batch
    names_group: bool = False
    reasons: dict[int, str] = msgspec.field(default_factory=dict)
    _found: dict[int, Reject] = msgspec.field(default_factory=dict)

    def add(self, order: int, reason: str, name: str) -> None:
        """Reject the record in the row ``order`` of the batch because of the field ``name``, unless it is rejected already."""
        if order in self._found:
            return
        self._found[order] = Reject(
            position=position_at(self.batch.positions, order),
            reason=reason,
            field=name,
            record=self.batch.records.row(order, named=True),
        )
        if self.names_group:
            self.reasons[order] = located_reason(self._found[order])

    def place(self, order: int) -> str:
        """Return the location of a record as text."""
        return location_text(self.batch.positions[order])

    def in_order(self) -> tuple[Reject, ...]:
        """Return the rejected records in the order of the batch."""
        return tuple(self._found[order] for order in sorted(self._found))


def unknown_group(place: str, reason: str) -> str:
    """Return why a partition is rejected: one of its records is rejected, and the group of this record is unknown."""
    return (
        f"The group of {place} is unknown, so the aggregates of any group could lack this record; nothing of this source was "
        f"grouped. Correct the source. The reason: {reason}"
    )


def group_reason(reason: str, rejected: int) -> str:
    """Return why a group is rejected. ``reason``: the reason of its first rejected record. ``rejected``: their number."""
    others = rejected - 1
    more = f" {others} more of its records are rejected." if others else ""
    return f"The group is rejected, because its aggregates would lack a record. {reason[:1].upper()}{reason[1:]}{more}"
