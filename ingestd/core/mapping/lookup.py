"""Lookups: values of a table, found by the text of an expression."""

from __future__ import annotations

import polars as pl

from ingestd.core.mapping.compiler import Compiler
from ingestd.core.mapping.specification import LookupSpec, Table
from ingestd.core.mapping.typed import RecordFault, Typed


def define_lookup(compiler: Compiler, name: str, lookup: LookupSpec, table: Table) -> tuple[Typed, Typed]:
    """Compile a lookup, which expressions use by its name. Return its key and its value.

    Raises:
        ExpressionError: the expression of ``by`` can't be compiled.
    """
    found = compiler.compile(lookup.by)
    text = found.expr if found.raw else compiler.step(found.text())
    keys, values = pl.Series(list(table), dtype=pl.String), pl.Series(list(table.values()), dtype=pl.String)
    value = compiler.step(text.replace_strict(keys, values, default=None, return_dtype=pl.String))
    faults = found.faults
    if lookup.missing == "reject":
        fault = RecordFault(
            bad=compiler.step(text.is_not_null() & value.is_null()),
            columns=found.columns,
            sentence=f"No '{lookup.table.key}' in {lookup.table.file} is the text of '{lookup.by}' (lookup '{name}').",
        )
        faults = (*faults, fault)
    compiler.named[name] = Typed(expr=value, kind="text", columns=found.columns, faults=faults)
    return Typed(expr=text, kind="text", columns=found.columns), compiler.named[name]
