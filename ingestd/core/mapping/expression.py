"""Expressions: SQL expressions over the fields of one record, compiled to column expressions.

Only the operators and functions with a handler exist: no SELECT, no aggregate, no window, no clock, no random number, no
file. Polars' own SQL is not used, because it rounds numbers and fails a whole batch at one overflow.

A field is text. Arithmetic, and comparisons with a number, read it as an exact decimal (`ingestd.core.mapping.number`).
If a record's text is no such decimal, the record has a fault. Faults in a part that SQL does not evaluate (another branch of
CASE, the right side of AND) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from sqlglot import exp

from ingestd.core.mapping import number
from ingestd.core.mapping.arithmetic import ARITHMETIC_HANDLERS
from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.compiler import AT_MOST, Compiler, Handler, handled, refusal
from ingestd.core.mapping.condition import CONDITION_HANDLERS
from ingestd.core.mapping.specification import LookupSpec, Table
from ingestd.core.mapping.text_function import TEXT_HANDLERS
from ingestd.core.mapping.typed import ExpressionError, RecordFault, Typed, position_of


def expression_compiler() -> Compiler:
    """Return a compiler of expressions."""
    return Compiler(handlers=_HANDLERS)


def _column(compiler: Compiler, node: exp.Column) -> Typed:
    name = ".".join(part.name for part in node.parts)
    if any(not isinstance(part, exp.Identifier) for part in node.parts):
        raise refusal(node)
    if name in compiler.named:
        return compiler.named[name]
    return Typed(expr=column_named(name), kind="text", columns=(name,), raw=True)


def _constant(_: Compiler, node: exp.Literal) -> Typed:
    text = str(node.this)
    if node.is_string:
        if "\0" in text:
            raise ExpressionError("A text can't contain the character U+0000.", position_of(node))
        return Typed(expr=pl.lit(text), kind="text", constant=text)
    value = number.exact_number(text)
    if value is None:
        raise ExpressionError(f"{text} is no number with {AT_MOST}.", position_of(node))
    return Typed(expr=number.number_literal(value), kind="number", constant=text)


def _paren(compiler: Compiler, node: exp.Paren) -> Typed:
    return compiler.node(node.this)


_HANDLERS: Mapping[type[exp.Expr], Handler] = {
    exp.Column: handled(_column, "this table db catalog"),
    exp.Literal: handled(_constant, "this is_string"),
    exp.Paren: handled(_paren),
    **ARITHMETIC_HANDLERS,
    **CONDITION_HANDLERS,
    **TEXT_HANDLERS,
}


def define_lookup(compiler: Compiler, name: str, lookup: LookupSpec, table: Table) -> tuple[Typed, Typed]:
    """Compile a lookup, so that later expressions can use it by ``name``. Return its key and its value.

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
            sentence=f"{lookup.table.file} has no row with the text of '{lookup.by}' as '{lookup.table.key}' (lookup '{name}').",
        )
        faults = (*faults, fault)
    compiler.named[name] = Typed(expr=value, kind="text", columns=found.columns, faults=faults)
    return Typed(expr=text, kind="text", columns=found.columns), compiler.named[name]
