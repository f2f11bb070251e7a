"""The expressions of one entry mapping, as steps over the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.specification import EntrySpec, Table, TableSource
from ingestd.core.mapping.typed import RecordFault, Typed, any_fault

VALUE = "\0value"
"""The name of the value's expression, in addition to the names of ``let``."""

ORDER = "\0order"
"""The column with the row of a record in its batch, from 0."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled expressions. ``outputs``, ``lookup_keys``: expressions by name. ``where``: the condition for making entries."""

    steps: tuple[pl.Expr, ...]
    where: Typed | None
    outputs: Mapping[str, Typed]
    lookup_keys: Mapping[str, Typed]

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the fields that ``name`` uses: the fields of the expression with this name, or the field ``name`` itself."""
        return self.outputs[name].columns if name in self.outputs else (name,)

    def run(self, frame: pl.DataFrame, used: Iterable[str]) -> tuple[pl.DataFrame, dict[int, tuple[str, str]]]:
        """Return the records that make entries, with a column of text for each used name, and the reasons to reject records.

        Each reason is a sentence and a field, by the record's `ORDER`.
        """
        names = frame.columns
        frame = self._with_steps(frame)
        outputs = {name: self.outputs[name] for name in dict.fromkeys(used) if name in self.outputs}
        included = self.where.expr.fill_null(value=False) if self.where is not None else pl.lit(value=True)
        faults = list(self.where.faults) if self.where is not None else []
        for output in outputs.values():
            faults += [replace(fault, bad=included & fault.bad) for fault in output.faults]
        bad: dict[int, tuple[str, str]] = {}
        if faults and frame.select(pl.any_horizontal([fault.bad for fault in faults]).any()).item():
            frame = frame.with_columns(_first(faults).alias("\0fault"))
            faulty = frame.filter(pl.col("\0fault").is_not_null())
            for record in faulty.iter_rows(named=True):
                fault = faults[record["\0fault"]]
                bad[record[ORDER]] = fault.reason(record), fault.columns[0] if fault.columns else ""
            frame = frame.filter(pl.col("\0fault").is_null())
        # The query is lazy, so that the filter copies no column that only conditions need.
        rows = frame.lazy() if self.where is None else frame.lazy().filter(included)
        texts = [output.text().alias(name) for name, output in outputs.items()]
        return rows.select([*(column_named(name) for name in names if name not in outputs), *texts]).collect(), bad

    def name(self, frame: pl.DataFrame, used: Iterable[str], unknown: frozenset[str]) -> pl.DataFrame:
        """Return the records as `run` does, but reject no record: a text that can't be computed is null.

        ``unknown``: fields with texts that the source could not read. A condition that uses such a field excludes no record.
        """
        names = frame.columns
        outputs = {name: self.outputs[name] for name in dict.fromkeys(used) if name in self.outputs}
        frame = self._with_steps(frame)
        if self.where is not None and unknown.isdisjoint(self.where.columns):
            frame = frame.filter(self.where.expr.fill_null(value=False) | any_fault(self.where.faults))
        texts = [pl.when(~any_fault(one.faults)).then(one.text()).alias(name) for name, one in outputs.items()]
        return frame.select([*(column_named(name) for name in names if name not in outputs), *texts])

    def evaluate(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return all records with a column of text for each output, also records that make no entries."""
        return self._with_steps(frame).with_columns(
            [output.text().alias(name) for name, output in self.outputs.items()]
        )

    def _with_steps(self, frame: pl.DataFrame) -> pl.DataFrame:
        for step in self.steps:
            frame = frame.with_columns(step)
        return frame


def compile_program(spec: EntrySpec, tables: Mapping[TableSource, Table]) -> Program | None:
    """Compile the expressions of a specification; None if it has none. A table that is not in ``tables`` is empty.

    Raises:
        ExpressionError: an expression can't be compiled.
    """
    if not spec.lookup and not spec.let and spec.where is None and spec.expression is None:
        return None
    # sqlglot is imported here, so that a configuration without expressions does not wait for it.
    from ingestd.core.mapping.expression import define_lookup, expression_compiler  # noqa: PLC0415

    compiler = expression_compiler()
    outputs: dict[str, Typed] = {}
    keys: dict[str, Typed] = {}
    for name, lookup in spec.lookup:
        keys[name], outputs[name] = define_lookup(compiler, name, lookup, tables.get(lookup.table, {}))
    for name, text in spec.let:
        outputs[name] = compiler.define(name, text)
    where = compiler.condition(spec.where) if spec.where is not None else None
    if spec.expression is not None:
        outputs[VALUE] = compiler.compile(spec.expression)
    return Program(steps=tuple(compiler.steps), where=where, outputs=outputs, lookup_keys=keys)


def _first(faults: list[RecordFault]) -> pl.Expr:
    """Return the index of the first fault of a record."""
    return pl.coalesce([pl.when(fault.bad).then(pl.lit(index)) for index, fault in enumerate(faults)])
