"""The difference and the factor between two values that are numbers."""

from __future__ import annotations

from decimal import Context, Decimal

import msgspec

_LONGEST = 40
"""The maximum number of characters of a number; a longer text is not compared."""
_EXACT = Context(prec=50)
_SHOWN = Context(prec=6)
_FACTOR = Context(prec=3)
_LARGE = (Decimal("0.5"), Decimal(2))


class NumericChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a value. ``difference`` (such as ``+0.2``) and ``factor`` (such as ``1.4``) may be empty.

    ``is_large``: the factor is at most a half or at least two, or out of range.
    """

    difference: str = ""
    factor: str = ""
    is_large: bool = False


def numeric_change(before: str | None, after: str | None) -> NumericChange:
    """Return the change of a value. The result is empty unless both values are finite numbers."""
    first, second = _number(before), _number(after)
    if first is None or second is None:
        return NumericChange()
    try:
        difference = _text(_SHOWN.plus(_EXACT.subtract(second, first)))
        if first == 0:
            return NumericChange(difference=_signed(difference), is_large=second != 0)
        factor = _EXACT.divide(second, first)
        shown = _text(_FACTOR.plus(factor))
    except ArithmeticError:  # the result is out of range
        return NumericChange(is_large=True)
    least, most = _LARGE
    return NumericChange(difference=_signed(difference), factor=shown, is_large=not least < factor < most)


def _number(text: str | None) -> Decimal | None:
    if text is None or len(text) > _LONGEST:
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:  # `decimal.InvalidOperation`: the text is no number
        return None
    return number if number.is_finite() else None


def _text(number: Decimal) -> str:
    """Return a number without needless zeros, and with an exponent only if it is very large or small."""
    if number == 0:
        return "0"
    text = f"{number:f}" if -6 <= number.adjusted() < 9 else f"{number.normalize():E}"
    return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text


def _signed(text: str) -> str:
    return text if text == "0" or text.startswith("-") else f"+{text}"
