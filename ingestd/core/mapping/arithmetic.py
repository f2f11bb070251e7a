"""Arithmetic of expressions: each result is an exact decimal, or the record has a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import polars as pl
from msgspec.structs import replace
from sqlglot import exp

from ingestd.core.mapping import number
from ingestd.core.mapping.compiler import Compiler, Handler, handled
from ingestd.core.mapping.typed import ExpressionError, RecordFault, Typed, any_fault, combined, position_of, shown

_TEXT_TYPES = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
_WHOLE_TYPES = {exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
_NUMBER_TYPES = {exp.DataType.Type.DECIMAL, *_WHOLE_TYPES}


def _size_sentence(node: exp.Expr) -> str:
    return f"The result of {shown(node)} has more than 19 digits before the point."


def _sum(compiler: Compiler, node: exp.Binary) -> Typed:
    left, right = compiler.number(node.this), compiler.number(node.expression)
    result = left.expr + right.expr if isinstance(node, exp.Add) else left.expr - right.expr
    return _checked(compiler.step(result), node, combined(left, right))


def _operands(compiler: Compiler, node: exp.Mul | exp.Div) -> tuple[Typed, Typed]:
    left, right = compiler.number(node.this), compiler.number(node.expression)
    if not left.columns and not right.columns:
        # Polars computes only one row for an expression that consists of literals.
        left = replace(left, expr=compiler.step(left.expr))
    return left, right


def _constant_of(found: Typed) -> Decimal | None:
    return number.decimal_of(found.constant) if found.constant is not None else None


def _product(compiler: Compiler, node: exp.Mul) -> Typed:
    left, right = _operands(compiler, node)
    return _rounding(
        compiler,
        node,
        combined(left, right),
        number.multiply(left.expr, right.expr, _constant_of(right)),
        lambda product: number.is_exact_product(product, left.expr, right.expr),
    )


def _quotient(compiler: Compiler, node: exp.Div) -> Typed:
    left, right = _operands(compiler, node)
    if right.constant is not None and number.decimal_of(right.constant) == 0:
        raise ExpressionError(f"{shown(node)} divides by zero.", position_of(node.expression))
    operands = combined(left, right)
    if right.constant is None:
        by_zero = RecordFault(
            bad=right.expr.to_physical() == 0, columns=operands.columns, sentence=f"{shown(node)} divides by zero."
        )
        operands = replace(operands, faults=(*operands.faults, by_zero))
    return _rounding(
        compiler,
        node,
        operands,
        number.divide(left.expr, right.expr, _constant_of(right)),
        lambda quotient: number.is_exact_quotient(quotient, left.expr, right.expr),
    )


def _rounding(
    compiler: Compiler,
    node: exp.Mul | exp.Div,
    operands: Typed,
    result: tuple[pl.Expr, pl.Expr | None],
    is_exact: Callable[[pl.Expr], pl.Expr],
) -> Typed:
    """Return the result of a product or quotient, with a fault if the result is rounded or too large.

    ``result``: the result of `number.multiply` or `number.divide`.
    """
    rounded, safe = compiler.step(result[0]), result[1]
    faults = operands.faults
    if safe is not None:
        bad = compiler.step(~safe)
        faults = (*faults, RecordFault(bad=bad, columns=operands.columns, sentence=_size_sentence(node)))
    exact = compiler.step(is_exact(rounded))
    checked = _checked(rounded, node, replace(operands, faults=faults))
    rounds = "is a number with more than 18 decimals" if isinstance(node, exp.Mul) else "has no exact result"
    inexact = RecordFault(
        bad=~exact,
        columns=operands.columns,
        sentence=f"{shown(node)} {rounds}; ROUND({shown(node, '')}, n) rounds it to n decimals.",
    )
    return replace(checked, faults=(*checked.faults, inexact), inexact=(exact, inexact))


def _checked(result: pl.Expr, node: exp.Expr, operands: Typed) -> Typed:
    large = RecordFault(bad=number.too_large(result), columns=operands.columns, sentence=_size_sentence(node))
    return Typed(expr=result, kind="number", columns=operands.columns, faults=(*operands.faults, large))


def _negation(compiler: Compiler, node: exp.Neg) -> Typed:
    found = compiler.number(node.this)
    constant = f"-{found.constant}" if found.constant and found.constant[0] not in "+-" else None
    return replace(found, expr=-found.expr, inexact=None, constant=constant, raw=False)


def _absolute(compiler: Compiler, node: exp.Abs) -> Typed:
    found = compiler.number(node.this)
    return replace(found, expr=found.expr.abs(), inexact=None, constant=None)


def _round(compiler: Compiler, node: exp.Round) -> Typed:
    decimals = (
        compiler.integer(node.args["decimals"], least=0, most=number.DECIMALS - 1) if node.args.get("decimals") else 0
    )
    found = compiler.number(node.this)
    faults = found.faults
    if found.inexact is not None:
        exact, fault = found.inexact
        tie = RecordFault(
            bad=~exact & number.is_tie(found.expr, decimals),
            columns=found.columns,
            sentence=f"{shown(node.this)} can't be rounded to {decimals} decimals: its first 18 decimals don't decide.",
        )
        faults = tuple(tie if one is fault else one for one in faults)
    result = compiler.step(number.rounded(found.expr, decimals))
    return _checked(result, node, replace(found, faults=faults))


def _floor(compiler: Compiler, node: exp.Floor | exp.Ceil) -> Typed:
    found = compiler.number(node.this)
    result = found.expr.floor() if isinstance(node, exp.Floor) else found.expr.ceil()
    return _checked(result, node, found)


def _extreme(compiler: Compiler, node: exp.Greatest | exp.Least) -> Typed:
    found = [compiler.number(item) for item in (node.this, *node.expressions)]
    pick = pl.max_horizontal if isinstance(node, exp.Greatest) else pl.min_horizontal
    joined = combined(*found)
    known = pl.all_horizontal([item.expr.is_not_null() for item in found])
    return replace(joined, expr=pl.when(known).then(pick([item.expr for item in found])), kind="number")


def _cast(compiler: Compiler, node: exp.Cast) -> Typed:
    to = node.args["to"]
    tries = isinstance(node, exp.TryCast)
    if to.this in _TEXT_TYPES and not to.expressions:
        return compiler.text(node.this)
    if to.this in _NUMBER_TYPES:
        size = _size(compiler, to)
        found = compiler.number(node.this)
        if size is None:
            result, faults = found.expr, found.faults
        else:
            digits, decimals = size
            result = compiler.step(number.rounded(found.expr, decimals))
            fault = RecordFault(
                bad=(result != found.expr) | (number.digits_above(result, digits - decimals)),
                columns=found.columns,
                sentence=f"{shown(node.this)} does not fit into {to.sql()}; the cast would lose digits.",
            )
            faults = (*found.faults, fault)
        if not tries:
            return Typed(expr=result, kind="number", columns=found.columns, faults=faults)
        failed = compiler.step(any_fault(faults))
        return Typed(expr=pl.when(~failed).then(result), kind="number", columns=found.columns)
    raise ExpressionError(
        f"{shown(node)}: only TEXT, DECIMAL, DECIMAL(p, s) and INTEGER are types of an expression.",
        position_of(node.this),
    )


def _size(compiler: Compiler, to: exp.DataType) -> tuple[int, int] | None:
    """Return the maximum number of digits and of decimals that a type permits; None: no limit."""
    if to.this in _WHOLE_TYPES:
        return 19, 0
    if not to.expressions:
        return None
    digits = compiler.integer(to.expressions[0].this, least=1, most=38)
    decimals = compiler.integer(to.expressions[1].this, least=0, most=min(18, digits)) if len(to.expressions) > 1 else 0
    return digits, decimals


ARITHMETIC_HANDLERS: Mapping[type[exp.Expr], Handler] = {
    exp.Add: handled(_sum),
    exp.Sub: handled(_sum),
    exp.Mul: handled(_product),
    exp.Div: handled(_quotient),
    exp.Neg: handled(_negation),
    exp.Abs: handled(_absolute),
    exp.Round: handled(_round, "this decimals"),
    exp.Floor: handled(_floor),
    exp.Ceil: handled(_floor),
    exp.Greatest: handled(_extreme, "this expressions"),
    exp.Least: handled(_extreme, "this expressions"),
    exp.Cast: handled(_cast, "this to"),
    exp.TryCast: handled(_cast, "this to"),
}
