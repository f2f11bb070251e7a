"""The rules for values give what plain Python computes with decimals and fractions, or refuse the value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRefused, ValueRules

decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)
WIDE = Context(prec=200)
FACTORS = {
    ("g", "kg"): (Fraction(1, 1000), Fraction(0)),
    ("inch", "mm"): (Fraction("25.4"), Fraction(0)),
    ("lb", "kg"): (Fraction("0.45359237"), Fraction(0)),
    ("mm", "inch"): (Fraction(5, 127), Fraction(0)),
    ("degC", "K"): (Fraction(1), Fraction("273.15")),
    ("degF", "degC"): (Fraction(5, 9), Fraction(-160, 9)),
}


def converted(rules: ValueRules, text: str, unit: str | None = None) -> str | None:
    """Return the converted value; None if it is refused."""
    try:
        return rules.convert(text, unit)
    except ValueRefused:
        return None


@given(value=decimals, group=st.sampled_from([".", " ", "'"]))
def test_a_decimal_comma_and_groups_keep_every_digit(value: Decimal, group: str) -> None:
    plain = f"{value:f}"
    foreign = f"{value:,f}".replace(",", "G").replace(".", ",").replace("G", group)
    assert converted(ValueRules(decimal=",", group=group), foreign) == plain


@pytest.mark.parametrize(
    "text",
    ["1.234", "1,2,3", "1.23.456,7", "12.34,5", "1.234,567.8", "", ",", "1 234,5", "NaN", "0.500", "-0.125", "012.345"],
)
def test_what_only_looks_like_a_number_is_refused(text: str) -> None:
    rules = ValueRules(decimal=",", group="." if text != "1.234" else "")
    assert converted(rules, text) is None


@given(value=decimals, pair=st.sampled_from(sorted(FACTORS)))
def test_units_are_converted_exactly_or_refused(value: Decimal, pair: tuple[str, str]) -> None:
    factor, offset = FACTORS[pair]
    result = Fraction(value) * factor + offset
    found = converted(ValueRules(unit=UnitRule(source=pair[0], target=pair[1])), f"{value:f}", pair[0])
    rest = result.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    assert (found is None) == (rest != 1)
    if found is not None:
        assert Fraction(found) == result
        assert "e" not in found.lower()
        assert found == "0" or "." not in found or not found.endswith("0")


@given(value=decimals, pair=st.sampled_from(sorted(FACTORS)), places=st.integers(0, 6))
def test_a_converted_number_is_rounded_once(value: Decimal, pair: tuple[str, str], places: int) -> None:
    factor, offset = FACTORS[pair]
    scaled = (Fraction(value) * factor + offset) * 10**places
    whole = (abs(scaled) + Fraction(1, 2)).__floor__()
    wanted = Decimal(whole if scaled >= 0 else -whole).scaleb(-places, WIDE)
    found = converted(ValueRules(unit=UnitRule(source=pair[0], target=pair[1]), decimals=places), f"{value:f}", pair[0])
    assert found is not None
    assert Decimal(found) == wanted
    assert len(found.partition(".")[2]) == places


@given(value=decimals, places=st.integers(0, 6))
def test_decimals_are_rounded_half_away_from_zero_and_filled(value: Decimal, places: int) -> None:
    wanted = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=WIDE)
    assert converted(ValueRules(decimals=places), f"{value:f}") == f"{wanted or abs(wanted):f}"


@given(value=decimals, digits=st.integers(1, 8))
def test_significant_digits_are_those_of_the_decimal_module(value: Decimal, digits: int) -> None:
    text = f"{value:f}"
    wanted = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(value)
    found = converted(ValueRules(digits=digits), text)
    assert found is not None
    assert Decimal(found) == wanted
    assert found == text or Decimal(found) != value


@given(value=decimals, low=decimals, high=decimals)
def test_a_number_is_kept_as_it_is_if_it_is_in_the_range(value: Decimal, low: Decimal, high: Decimal) -> None:
    text = f"{value:f}"
    found = converted(ValueRules(minimum=str(low), maximum=str(high)), text)
    assert found == (text if low <= value <= high else None)


@given(text=st.text(max_size=8), width=st.integers(1, 10), left=st.booleans())
def test_trim_case_and_padding_are_those_of_python(text: str, width: int, left: bool) -> None:
    rules = ValueRules(trim=True, case="upper", pad=PadRule(width=width, fill="*", side="left" if left else "right"))
    upper = text.strip().upper()
    assert converted(rules, text) == (upper.rjust(width, "*") if left else upper.ljust(width, "*"))


@given(text=st.text(max_size=12))
def test_without_rules_a_value_stays(text: str) -> None:
    assert ValueRules().convert(text) == text


def test_marks_of_missing_values_are_compared_after_trimming() -> None:
    rules = ValueRules(trim=True, missing=("", "n/a"))
    assert [rules.convert(text) for text in (" ", "n/a ", "N/A", "0")] == [None, None, "N/A", "0"]


def test_only_listed_values_are_permitted_and_replaced() -> None:
    rules = ValueRules(one_of=(("OK", "pass"), ("NOK", "fail")))
    assert [converted(rules, text) for text in ("OK", "NOK", "ok")] == ["pass", "fail", None]


def test_a_pattern_matches_the_whole_value() -> None:
    rules = ValueRules(pattern="[A-Z]{2}-[0-9]{3}")
    assert [converted(rules, text) for text in ("AB-123", "AB-1234", "xAB-123")] == ["AB-123", None, None]


BERLIN = ZoneInfo("Europe/Berlin")
moment = datetime.fromisoformat
around_changes = st.one_of(
    st.datetimes(moment("2026-03-29T00"), moment("2026-03-29T04")),
    st.datetimes(moment("2026-10-25T01"), moment("2026-10-25T04")),
    st.datetimes(moment("1990-01-01T00"), moment("2037-01-01T00")),
)


@given(local=around_changes)
def test_a_local_time_gets_its_offset_unless_the_clocks_skip_or_repeat_it(local: datetime) -> None:
    local = local.replace(microsecond=0)
    instants = [
        instant
        for hours in (1, 2)
        if (instant := local.replace(tzinfo=UTC) - timedelta(hours=hours)).astimezone(BERLIN).replace(tzinfo=None)
        == local
    ]
    rule = DateRule(form="%d.%m.%Y %H:%M:%S", timezone="Europe/Berlin")
    text = local.strftime("%d.%m.%Y %H:%M:%S")
    found = converted(ValueRules(date=rule), text)
    if len(instants) != 1:
        assert found is None
        return
    assert found is not None
    assert datetime.fromisoformat(found) == instants[0]
    in_utc = converted(ValueRules(date=DateRule(form=rule.form, timezone=rule.timezone, target="UTC")), text)
    assert in_utc == instants[0].isoformat()


@pytest.mark.parametrize(
    ("form", "text", "result"),
    [
        ("%d.%m.%Y", "07.11.2026", "2026-11-07"),
        ("iso", "2026-11-07", "2026-11-07"),
        ("iso", "2026-11-07 12:30", "2026-11-07T12:30:00"),
        ("%Y-%m-%dT%H:%M:%S%z", "2026-11-07T12:30:00+0100", "2026-11-07T12:30:00+01:00"),
        ("%d.%m.%Y", "31.02.2026", None),
        ("%d.%m.%Y", "2026-11-07", None),
    ],
)
def test_dates_become_iso_8601(form: str, text: str, result: str | None) -> None:
    assert converted(ValueRules(date=DateRule(form=form)), text) == result


@pytest.mark.parametrize(
    ("text", "target", "result"),
    [
        ("2026-01-05T10:00:05.1234567", None, "2026-01-05T10:00:05.1234567"),
        ("2026-01-05T10:00:05.0000001+01:00", None, "2026-01-05T10:00:05.0000001+01:00"),
        ("20260105 100005,123456789Z", "Europe/Berlin", "2026-01-05T11:00:05.123456789+01:00"),
        ("2026-01-05T10:00:05.1234560", None, "2026-01-05T10:00:05.123456"),
        ("2026-01-05T10:00:05.0000000", None, "2026-01-05T10:00:05"),
    ],
)
def test_a_time_keeps_each_digit_of_its_second(text: str, target: str | None, result: str) -> None:
    assert converted(ValueRules(date=DateRule(form="iso", target=target)), text) == result


def test_a_name_of_a_time_zone_is_part_of_the_format() -> None:
    rules = ValueRules(date=DateRule(form="%d.%m.%Y %H:%M UTC", timezone="UTC", target="Europe/Berlin"))
    assert converted(rules, "01.02.2026 10:00 UTC") == "2026-02-01T11:00:00+01:00"


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 401])
def test_a_number_of_absurd_size_is_refused_at_once(text: str) -> None:
    assert converted(ValueRules(decimals=2), text) is None


def test_an_angle_has_no_exact_factor() -> None:
    rules = ValueRules(unit=UnitRule(source="deg", target="rad"))
    with pytest.raises(ValueRefused, match="not exact; set 'digits' or 'decimals'"):
        rules.convert("90", "deg")
    rounded = ValueRules(unit=UnitRule(source="deg", target="rad"), digits=6)
    assert rounded.convert("90", "deg") == "1.5708"
