"""Conditions and alternatives of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl
from msgspec.structs import replace
from sqlglot import exp

from ingestd.core.mapping.compiler import Compiler, Handler, handled, refusal
from ingestd.core.mapping.typed import (
    ExpressionError,
    Typed,
    as_condition,
    combined,
    guarded,
    one_kind,
    position_of,
    shown,
)

_COMPARISONS: Mapping[type[exp.Expr], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    exp.EQ: lambda left, right: left == right,
    exp.NEQ: lambda left, right: left != right,
    exp.LT: lambda left, right: left < right,
    exp.LTE: lambda left, right: left <= right,
    exp.GT: lambda left, right: left > right,
    exp.GTE: lambda left, right: left >= right,
}


def _escaped(character: str) -> str:
    return f"\\{character}" if character in r"\.+*?()|[]{}^$#&-~" else character


def _comparison(compiler: Compiler, node: exp.Binary) -> Typed:
    left, right = _comparable(compiler, node, node.this, node.expression)
    return replace(combined(left, right), expr=_COMPARISONS[type(node)](left.expr, right.expr), kind="boolean")


def _comparable(compiler: Compiler, node: exp.Expr, *operands: exp.Expr) -> tuple[Typed, ...]:
    """Return the operands as numbers if one is a number. Otherwise return the operands unchanged; they must be of one kind."""
    found = [compiler.node(operand) for operand in operands]
    kinds = {item.kind for item in found} - {"null"}
    if "number" in kinds:
        return tuple(compiler.as_number(item, operand) for item, operand in zip(found, operands, strict=True))
    if len(kinds) > 1:
        raise ExpressionError(f"{shown(node)} compares a condition with text.", position_of(node))
    ordered = not isinstance(node, exp.EQ | exp.NEQ | exp.In | exp.Case | exp.Nullif | exp.NullSafeEQ)
    if ordered and kinds == {"text"} and all(item.raw for item in found):
        raise ExpressionError(
            f"{shown(node)} compares two fields, which may be text or numbers. Write CAST({shown(operands[0], '')} AS DECIMAL) "
            "to compare numbers, or CAST(… AS TEXT) to compare text.",
            position_of(node),
        )
    return tuple(found)


def _both(compiler: Compiler, node: exp.And | exp.Or) -> Typed:
    left, right = compiler.boolean(node.this), compiler.boolean(node.expression)
    if isinstance(node, exp.And):
        decided, result = left.expr.eq_missing(pl.lit(value=False)), left.expr & right.expr
    else:
        decided, result = left.expr.eq_missing(pl.lit(value=True)), left.expr | right.expr
    return replace(combined(left, guarded(right, ~decided)), expr=result, kind="boolean")


def _inversion(compiler: Compiler, node: exp.Not) -> Typed:
    found = compiler.boolean(node.this)
    return replace(found, expr=~found.expr)


def _is(compiler: Compiler, node: exp.Is) -> Typed:
    found = compiler.node(node.this)
    if isinstance(node.expression, exp.Null):
        return replace(found, expr=found.expr.is_null(), kind="boolean", raw=False, constant=None, inexact=None)
    if isinstance(node.expression, exp.Boolean):
        condition = compiler.boolean(node.this)
        return replace(condition, expr=condition.expr.eq_missing(pl.lit(value=bool(node.expression.this))))
    raise ExpressionError("IS takes NULL, TRUE or FALSE.", position_of(node.expression))


def _in(compiler: Compiler, node: exp.In) -> Typed:
    if node.args.get("query") is not None:
        raise refusal(node.args["query"])
    if not node.expressions:
        raise ExpressionError("IN takes a list of values, such as IN ('a', 'b').", position_of(node))
    parts = [exp.EQ(this=node.this, expression=item) for item in node.expressions]
    found = [_comparison(compiler, part) for part in parts]
    return replace(combined(*found), expr=pl.any_horizontal([item.expr for item in found]), kind="boolean")


def _between(compiler: Compiler, node: exp.Between) -> Typed:
    low = _comparison(compiler, exp.GTE(this=node.this, expression=node.args["low"]))
    high = _comparison(compiler, exp.LTE(this=node.this, expression=node.args["high"]))
    return replace(combined(low, high), expr=low.expr & high.expr, kind="boolean")


def _like(compiler: Compiler, node: exp.Like | exp.ILike) -> Typed:
    found, pattern = compiler.text(node.this), compiler.literal(node.expression, "a pattern")
    wanted = "".join({"%": ".*", "_": "."}.get(character) or _escaped(character) for character in pattern)
    flags = "(?is)" if isinstance(node, exp.ILike) else "(?s)"
    result = found.expr.str.contains(f"{flags}^{wanted}$")
    return as_condition(found, ~result if node.args.get("negate") else result)


def _case(compiler: Compiler, node: exp.Case) -> Typed:
    branches: list[tuple[Typed, exp.Expr]] = []
    for branch in node.args["ifs"]:
        if node.this is None:
            branches.append((compiler.boolean(branch.this), branch.args["true"]))
        else:
            left, right = _comparable(compiler, node, node.this, branch.this)
            equal = replace(combined(left, right), expr=left.expr == right.expr, kind="boolean")
            branches.append((equal, branch.args["true"]))
    return _choose(compiler, branches, node.args.get("default"))


def _if(compiler: Compiler, node: exp.If) -> Typed:
    return _choose(compiler, [(compiler.boolean(node.this), node.args["true"])], node.args.get("false"))


def _choose(compiler: Compiler, branches: Sequence[tuple[Typed, exp.Expr]], default: exp.Expr | None) -> Typed:
    values = [compiler.node(value) for _, value in branches]
    values.append(compiler.node(default) if default is not None else _null())
    kind, exprs = one_kind(values)
    parts: list[Typed] = []
    open_rows = pl.lit(value=True)
    chosen = pl.lit(None)
    conditions: list[pl.Expr] = []
    for (condition, _), value in zip(branches, values, strict=False):
        true = compiler.step(condition.expr.fill_null(value=False))
        conditions.append(true)
        parts += [guarded(condition, open_rows), guarded(value, open_rows & true)]
        open_rows = open_rows & ~true
    parts.append(guarded(values[-1], open_rows))
    chosen = exprs[-1]
    for true, value_expr in zip(reversed(conditions), reversed(exprs[:-1]), strict=True):
        chosen = pl.when(true).then(value_expr).otherwise(chosen)
    return replace(combined(*parts), expr=chosen, kind=kind)


def _coalesce(compiler: Compiler, node: exp.Coalesce) -> Typed:
    values = [compiler.node(item) for item in (node.this, *node.expressions)]
    kind, exprs = one_kind(values)
    parts: list[Typed] = []
    missing = pl.lit(value=True)
    for value in values:
        parts.append(guarded(value, missing))
        missing = missing & value.expr.is_null()
    return replace(combined(*parts), expr=pl.coalesce(exprs), kind=kind)


def _nullif(compiler: Compiler, node: exp.Nullif) -> Typed:
    left, right = _comparable(compiler, node, node.this, node.expression)
    value = compiler.node(node.this)
    equal = (left.expr == right.expr).fill_null(value=False)
    joined = combined(left, right)
    return replace(joined, expr=pl.when(~equal).then(value.expr), kind=value.kind, raw=value.raw)


def _truth(_: Compiler, node: exp.Boolean) -> Typed:
    return Typed(expr=pl.lit(value=bool(node.this)), kind="boolean")


def _null(*_: object) -> Typed:
    return Typed(expr=pl.lit(None), kind="null")


CONDITION_HANDLERS: Mapping[type[exp.Expr], Handler] = {
    **dict.fromkeys(_COMPARISONS, handled(_comparison)),
    exp.Boolean: handled(_truth),
    exp.Null: handled(_null),
    exp.And: handled(_both),
    exp.Or: handled(_both),
    exp.Not: handled(_inversion),
    exp.Is: handled(_is),
    exp.In: handled(_in, "this expressions query"),
    exp.Between: handled(_between, "this low high"),
    exp.Like: handled(_like, "this expression negate"),
    exp.ILike: handled(_like, "this expression negate"),
    exp.Case: handled(_case, "this ifs default"),
    exp.If: handled(_if, "this true false"),
    exp.Coalesce: handled(_coalesce, "this expressions"),
    exp.Nullif: handled(_nullif),
}
