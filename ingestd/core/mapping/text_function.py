"""Text functions of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl
from msgspec.structs import replace
from sqlglot import exp

from ingestd.core.mapping import number
from ingestd.core.mapping.compiler import Compiler, Handler, handled
from ingestd.core.mapping.typed import ExpressionError, Typed, as_condition, as_text, combined, position_of


def _upper(compiler: Compiler, node: exp.Upper | exp.Lower) -> Typed:
    found = compiler.text(node.this)
    upper = isinstance(node, exp.Upper)
    return as_text(found, found.expr.str.to_uppercase() if upper else found.expr.str.to_lowercase())


def _trim(compiler: Compiler, node: exp.Trim) -> Typed:
    found = compiler.text(node.this)
    characters = compiler.literal(node.expression, "the characters to remove") if node.expression else " "
    strip = {
        "LEADING": found.expr.str.strip_chars_start,
        "TRAILING": found.expr.str.strip_chars_end,
    }.get(str(node.args.get("position") or "BOTH").upper(), found.expr.str.strip_chars)
    return as_text(found, strip(characters))


def _substring(compiler: Compiler, node: exp.Substring) -> Typed:
    found = compiler.text(node.this)
    start = compiler.integer(node.args["start"], least=1)
    length = compiler.integer(node.args["length"], least=0) if node.args.get("length") is not None else None
    return as_text(found, found.expr.str.slice(start - 1, length))


def _left(compiler: Compiler, node: exp.Left | exp.Right) -> Typed:
    found, count = compiler.text(node.this), compiler.integer(node.expression, least=0)
    text = found.expr.str
    if isinstance(node, exp.Left):
        return as_text(found, text.head(count))
    return as_text(found, text.tail(count))


def _replace(compiler: Compiler, node: exp.Replace) -> Typed:
    found = compiler.text(node.this)
    old = compiler.literal(node.expression, "the text to replace")
    if not old:
        raise ExpressionError("REPLACE needs a text to replace.", position_of(node.expression))
    new = compiler.literal(node.args.get("replacement"), "the replacement")
    return as_text(found, found.expr.str.replace_all(old, new, literal=True))


def _concat(compiler: Compiler, node: exp.Concat | exp.DPipe) -> Typed:
    items = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    found = [compiler.text(item) for item in items]
    return replace(combined(*found), expr=pl.concat_str([item.expr for item in found]), kind="text")


def _length(compiler: Compiler, node: exp.Length) -> Typed:
    found = compiler.text(node.this)
    return Typed(
        expr=found.expr.str.len_chars().cast(number.number_type()),
        kind="number",
        columns=found.columns,
        faults=found.faults,
    )


def _split(compiler: Compiler, node: exp.SplitPart) -> Typed:
    found = compiler.text(node.this)
    by = compiler.literal(node.args.get("delimiter"), "the separator")
    if not by:
        raise ExpressionError("SPLIT_PART needs a separator.", position_of(node.args["delimiter"]))
    index = compiler.integer(node.args["part_index"], least=1)
    parts = found.expr.str.split(by)
    return as_text(
        found, pl.when(found.expr.is_not_null()).then(parts.list.get(index - 1, null_on_oob=True).fill_null(""))
    )


def _contains(compiler: Compiler, node: exp.StartsWith | exp.EndsWith | exp.Contains) -> Typed:
    found, part = compiler.text(node.this), compiler.text(node.expression)
    test: dict[type[exp.Expr], Callable[[pl.Expr], pl.Expr]] = {
        exp.StartsWith: found.expr.str.starts_with,
        exp.EndsWith: found.expr.str.ends_with,
        exp.Contains: lambda text: found.expr.str.contains(text, literal=True),
    }
    return replace(combined(found, part), expr=test[type(node)](part.expr), kind="boolean")


def _matches(compiler: Compiler, node: exp.RegexpLike) -> Typed:
    found, pattern = compiler.text(node.this), compiler.literal(node.expression, "a regular expression")
    _check_pattern(pattern, node.expression)
    return as_condition(found, found.expr.str.contains(pattern))


def _extract(compiler: Compiler, node: exp.RegexpExtract) -> Typed:
    found, pattern = compiler.text(node.this), compiler.literal(node.expression, "a regular expression")
    _check_pattern(pattern, node.expression)
    group = compiler.integer(node.args["position"], least=0, most=99) if node.args.get("position") is not None else 0
    return as_text(found, found.expr.str.extract(pattern, group))


def _check_pattern(pattern: str, node: exp.Expr) -> None:
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        reasons = [line.removeprefix("error: ") for line in str(error).splitlines() if line.startswith("error: ")]
        raise ExpressionError(
            f"The regular expression can't be used: {reasons[0] if reasons else 'it is too large'}.",
            position_of(node),
        ) from None


TEXT_HANDLERS: Mapping[type[exp.Expr], Handler] = {
    exp.Upper: handled(_upper),
    exp.Lower: handled(_upper),
    exp.Trim: handled(_trim, "this expression position"),
    exp.Substring: handled(_substring, "this start length"),
    exp.Left: handled(_left),
    exp.Right: handled(_left),
    exp.Replace: handled(_replace, "this expression replacement"),
    exp.Concat: handled(_concat, "expressions"),
    exp.DPipe: handled(_concat),
    exp.Length: handled(_length, "this"),
    exp.SplitPart: handled(_split, "this delimiter part_index"),
    exp.StartsWith: handled(_contains),
    exp.EndsWith: handled(_contains),
    exp.Contains: handled(_contains),
    exp.RegexpLike: handled(_matches),
    exp.RegexpExtract: handled(_extract, "this expression position"),
}
