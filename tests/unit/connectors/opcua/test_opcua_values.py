"""Values of OPC UA as text."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from hypothesis import given
from hypothesis import strategies as st

from connectors.opcua.values import MOST_CHARACTERS, value_text
from ingestd.sdk import RecordUnreadable


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "Boolean", "true"),
        (-(2**63), "Int64", "-9223372036854775808"),
        (2**64 - 1, "UInt64", "18446744073709551615"),
        (0.1, "Double", "0.1"),
        (math.nan, "Double", "NaN"),
        (-math.inf, "Float", "-Infinity"),
        ("00417", "String", "00417"),
        (None, "String", None),
        (b"\x00\xff", "ByteString", "00ff"),
        (datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC), "DateTime", "2026-03-29T01:30:00.123456+00:00"),
        (ua.LocalizedText("Ofen", "de"), "LocalizedText", "Ofen"),
        (ua.QualifiedName("Oven", 2), "QualifiedName", "Oven"),
        (ua.StatusCode(ua.StatusCodes.BadTimeout), "StatusCode", "BadTimeout"),
        ([1, 2], "Int32", "[1, 2]"),
        ([0.1, math.nan], "Float", '["0.1", "NaN"]'),
        (["a", None], "String", '["a", null]'),
    ],
)
def test_a_value_has_the_text_of_its_type(value: Any, kind: str, text: str | None) -> None:
    assert value_text(ua.Variant(value, getattr(ua.VariantType, kind))) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_is_the_shortest_that_reads_back_as_the_same_float(value: float) -> None:
    text = value_text(ua.Variant(value, ua.VariantType.Float))
    assert text is not None
    assert struct.pack("f", float(text)) == struct.pack("f", value)
    digits = len(text.lower().partition("e")[0].replace(".", "").lstrip("-0").rstrip("0"))
    shorter = float(f"{value:.{max(1, digits - 1)}g}")
    assert digits <= 1 or abs(shorter) > 3.4028235e38 or struct.pack("f", shorter) != struct.pack("f", value)


def test_a_structure_and_a_very_long_text_are_refused() -> None:
    with pytest.raises(RecordUnreadable, match="ExtensionObject"):
        value_text(ua.Variant(ua.EUInformation(), ua.VariantType.ExtensionObject))
    with pytest.raises(RecordUnreadable, match="characters"):
        value_text(ua.Variant("x" * (MOST_CHARACTERS + 1), ua.VariantType.String))
