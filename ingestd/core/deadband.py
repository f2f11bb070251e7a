"""The dead-band: a new number is not sent if it differs from the sent number by at most this band."""

from __future__ import annotations

from fractions import Fraction

from ingestd.core.mapping.number import decimal_of

_EXPONENT_AT_MOST = 400
"""A number with more digits before or after the point is outside of every dead-band."""


def band_of(text: str) -> tuple[Fraction, bool] | None:
    """Return the size of a band such as ``0.5`` or ``1%``, and whether it is relative; None if the text is not a band."""
    size = _exact(text.removesuffix("%"))
    if size is None or size < 0:
        return None
    return (size / 100, True) if text.endswith("%") else (size, False)


def is_within_band(sent: str, read: str, band: str) -> bool:
    """Return whether the read value differs from the sent value by at most the band; False if one of them is no number.

    A relative band is a fraction of the sent value.
    """
    old, new, size = _exact(sent), _exact(read), band_of(band)
    if old is None or new is None or size is None:
        return False
    limit, relative = size
    return abs(new - old) <= (limit * abs(old) if relative else limit)


def _exact(text: str) -> Fraction | None:
    found = decimal_of(text) if len(text) <= _EXPONENT_AT_MOST else None
    if found is None or not -_EXPONENT_AT_MOST <= found.adjusted() <= _EXPONENT_AT_MOST:
        return None
    return Fraction(found)
