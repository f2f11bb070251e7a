"""Exact decimal numbers of expressions, in columns: at most 19 digits before the point and 18 after it.

Polars computes with `pl.Decimal` of 38 digits. It rounds a result with more digits, and an overflow fails the whole batch. So
each operation here first replaces operands that would overflow, and then reports the rows with an inexact or too large result.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation

import polars as pl

DECIMALS = 18
PRECISION = 38
"""The number of digits of a number, including its `DECIMALS`."""
LIMIT_DIGITS = 19
"""A number with more digits before the point doesn't fit."""

_SCALE = 10**DECIMALS
_SURE_BYTES = 19
"""A number with at most this number of characters and without exponent always fits."""
_FORM = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_UNIT = Decimal(1).scaleb(-DECIMALS)
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])


def number_type() -> pl.Decimal:
    """Return the data type of numbers in expressions."""
    return pl.Decimal(PRECISION, DECIMALS)


def decimal_of(text: str) -> Decimal | None:
    """Return the number in a text such as ``-1.50e3`` (ASCII digits, no spaces); None if the text is not a number."""
    if not _FORM.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except DecimalException:  # an exponent of more than 18 digits
        return None


def exact_number(text: str) -> Decimal | None:
    """Return the number in a text; None if the text is not a number, or the number doesn't fit."""
    value = decimal_of(text)
    if value is None or (value and value.adjusted() >= LIMIT_DIGITS):
        return None
    try:
        return (value or Decimal(0)).quantize(_UNIT, context=_EXACT)
    except DecimalException:
        return None


def read_numbers(texts: pl.Series) -> pl.Series:
    """Return the texts as numbers (`number_type`); null where `exact_number` returns None."""
    numbers = texts.cast(number_type(), strict=False)
    doubtful = ((texts.str.len_bytes() > _SURE_BYTES) | texts.str.contains("[eE]")).arg_true()
    if doubtful.len():
        read = [exact_number(text) for text in texts.gather(doubtful)]
        numbers = numbers.scatter(doubtful, pl.Series(read, dtype=number_type()))
    return numbers


def number_literal(value: Decimal) -> pl.Expr:
    """Return a column expression for a number, which must fit into `number_type`."""
    return pl.lit(value).cast(number_type())


def number_text(number: pl.Expr) -> pl.Expr:
    """Return numbers as their shortest text: no exponent, no zero at the end of a fraction, ``0`` for zero."""
    return number.cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


def too_large(result: pl.Expr) -> pl.Expr:
    """Return whether a result doesn't fit."""
    return digits_above(result, LIMIT_DIGITS)


def digits_above(number: pl.Expr, digits: int) -> pl.Expr:
    """Return whether a number has more than this number of digits before its point."""
    limit = 10 ** min(digits + DECIMALS, 38)
    scaled = number.to_physical()
    return (scaled >= _wide(limit)) | (scaled <= _wide(-limit))


def multiply(left: pl.Expr, right: pl.Expr, constant: Decimal | None) -> tuple[pl.Expr, pl.Expr | None]:
    """Return the products, and whether the operands are small enough to compute a product; otherwise the product is null.

    ``constant``: the value of ``right``, if it is a constant. The second result is None if every product can be computed.
    """
    if constant is not None and abs(constant) <= 10:
        return left * right, None
    safe = _size(left) * _size(right) < 9e19
    return pl.when(safe).then(
        pl.when(safe).then(left).otherwise(number_literal(Decimal(0))) * right_of(safe, right)
    ), safe


def right_of(safe: pl.Expr, operand: pl.Expr) -> pl.Expr:
    """Return the operand if ``safe`` is true, else 1."""
    return pl.when(safe).then(operand).otherwise(number_literal(Decimal(1)))


def divide(left: pl.Expr, right: pl.Expr, constant: Decimal | None) -> tuple[pl.Expr, pl.Expr | None]:
    """Return the quotients, and whether a quotient can be computed; see `multiply`."""
    if constant is not None and abs(constant) >= Decimal("0.1"):
        return left / right, None
    safe = (right.to_physical() != 0) & (_size(left) < 9e19 * _size(right))
    return pl.when(safe).then(left / right_of(safe, right)), safe


def is_exact_product(product: pl.Expr, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Return whether a product of `multiply` was not rounded.

    Both sides are compared modulo 2**128. The difference of the true values is at most half of 10**18, so it is zero if it is
    zero modulo 2**128.
    """
    return (left.to_physical() * right.to_physical()).eq(product.to_physical() * _wide(_SCALE))


def is_exact_quotient(quotient: pl.Expr, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Return whether a quotient of `divide` was not rounded.

    The rule is the same as for products: the difference is at most half of the divisor, which is less than 10**37.
    """
    return (left.to_physical() * _wide(_SCALE)).eq(quotient.to_physical() * right.to_physical())


def is_tie(result: pl.Expr, decimals: int) -> pl.Expr:
    """Return whether a result is exactly halfway between two numbers with this number of decimals."""
    step = 10 ** (DECIMALS - decimals)
    return (result.to_physical().mod(_wide(step))).eq(_wide(step // 2))


def rounded(number: pl.Expr, decimals: int) -> pl.Expr:
    """Round to this number of decimals; a half is rounded away from zero."""
    return number.round(decimals, mode="half_away_from_zero")


def _size(number: pl.Expr) -> pl.Expr:
    """Return the approximate absolute value."""
    return number.to_physical().cast(pl.Float64).abs() / pl.lit(float(_SCALE))


def _wide(value: int) -> pl.Expr:
    return pl.lit(value, dtype=pl.Int128)
