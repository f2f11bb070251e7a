"""Units are converted exactly, and a text that a record decides costs a bounded amount of work."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pint
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.core.mapping.conversion import UnitRule, ValueRefused, ValueRules
from ingestd.core.mapping.unit import UnitError, unit_conversion

BITS = 100_000
"""The largest number that a unit may need: a few thousand digits."""

HOSTILE = (
    "9**9**9", "9^9^9", "9⁹⁹⁹⁹⁹⁹⁹⁹⁹", "9··9··9", "9\N{MULTIPLICATION SIGN}\N{MULTIPLICATION SIGN}9**9",
    "9 **9\n**9", "(9*9)**99999999",
    "((((9**99)**99)**99)**99)", "1.000001**999999999", "m**(9)**9**9", "m**(9**9**9)", "(m.9**99999)**99999",
    "1e999999999", "1e9**1e9", "1.e999999999", "1e9,9,9,9,9,9,9,9", "1e9_9_9_9_9_9_9_9_9", "m**1e999999999",
    "m**99999", "((m**99)**99)**99", "mm**999", "mm*" * 99_999 + "mm", "(" * 99_999 + "m" + ")" * 99_999,
    "x" * 1_000_000,
)  # fmt: skip


class TooMuchWork(BaseException):
    """A number is larger than any unit needs. No handler of errors catches it."""


@pytest.fixture(scope="module", autouse=True)
def bounded_numbers() -> Iterator[None]:
    """Stop the evaluation of a number before it is large, and the parsing of a long text."""
    power, parsed = Fraction.__pow__, Fraction.__new__

    def bounded_power(base: Fraction, exponent: Any, modulo: None = None) -> Any:
        size = max(abs(base.numerator), base.denominator)
        if size > 1 and size.bit_length() * abs(exponent) > BITS:
            raise TooMuchWork
        return power(base, exponent)

    def bounded_number(cls: type[Fraction], numerator: Any = 0, *rest: Any, **named: Any) -> Fraction:
        if isinstance(numerator, str) and abs(int(numerator.lower().partition("e")[2] or 0)) > BITS:
            raise TooMuchWork
        return parsed(cls, numerator, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fraction, "__pow__", bounded_power)
        patch.setattr(Fraction, "__new__", bounded_number)
        yield


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_hostile_unit_is_refused_with_a_short_sentence_and_not_evaluated(text: str) -> None:
    with pytest.raises(ValueRefused, match="There is no unit") as refused:
        ValueRules(unit=UnitRule(source="{units.x}", target="m"), digits=3).convert("1", text)
    assert len(str(refused.value)) < 250
    with pytest.raises(UnitError):
        unit_conversion(text, text)


@given(text=st.text("19.0e*^()²⁹·m/_+-, \n%", max_size=30))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_of_numbers_powers_and_units_is_expensive(text: str) -> None:
    for source, target in ((text, text), (text, "m"), ("m", text)):
        try:
            unit_conversion(source, target)
        except UnitError as error:
            assert str(error)  # noqa: PT017 - a refused text is as good as a unit


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("m²", "m^2"), ("kg m⁻³", "kg/m**3"), ("V/Hz**(1/2)", "V/Hz^0.5"), ("1/min", "min**-1"), ("1.0 m", "m"),
        ("square meter", "m**2"), ("N·m", "N*m"), ("mol/(L*s)", "mol/L/s"), ("°C", "degC"), ("cmH2O", "cmH2O"),
        ("mm^4", "mm**4.0"), ("m**12", "m**+12"), ("%", "percent"),
    ],
)  # fmt: skip
def test_the_notations_of_powers_and_ratios_are_units(text: str, same: str) -> None:
    found = unit_conversion(text, same)
    assert (found.factor, found.offset, found.exact) == (Fraction(1), Fraction(0), True)


def test_a_factor_of_many_digits_is_exact_if_it_is_a_power_of_ten() -> None:
    assert unit_conversion("Ym**12", "ym**12").exact
    assert not unit_conversion("ly**12", "inch**12").exact


def test_the_parsed_texts_of_records_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """pint keeps each text, with 0.6 kB."""
    monkeypatch.setattr("ingestd.core.mapping.unit._KEPT_TEXTS", 2)
    made: list[pint.UnitRegistry[Any]] = []
    create = pint.UnitRegistry

    def registry(**options: Any) -> pint.UnitRegistry[Any]:
        made.append(create(**options))
        return made[-1]

    monkeypatch.setattr("pint.UnitRegistry", registry)
    texts = [f"m**{power}" for power in range(2, 6)]
    assert [unit_conversion(f"k{text}", text).factor for text in texts] == [1000**power for power in range(2, 6)]
    assert len(made) in {2, 3}
