from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.settings.cron import CronError, check_cron, next_cron_run

_NUMBERS = st.integers(0, 64).map(str)
_VALUES = st.one_of(_NUMBERS, st.sampled_from(["jan", "dec", "mon", "sun", "sat", "x"]))
_ITEMS = st.builds(
    lambda first, last, step: f"{first}{last}{step}",
    st.one_of(st.just("*"), _VALUES),
    st.one_of(st.just(""), _VALUES.map("-{}".format)),
    st.one_of(st.just(""), _NUMBERS.map("/{}".format)),
)
_FIELDS = st.one_of(st.just("*"), st.lists(_ITEMS, min_size=1, max_size=2).map(",".join))


def weekdays(text: str) -> set[str]:
    after, days = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp(), set()
    for _ in range(14):
        after = next_cron_run(f"0 2 * * {text}", "UTC", after=after)
        days.add(f"{datetime.fromtimestamp(after, UTC):%a}".lower())
    return days


@pytest.mark.parametrize(
    "text",
    [
        "0 2 * * *",
        "*/15 8-17 * * mon-fri",
        "0 0 1 JAN,jul *",
        "0 0 * jan-3 *",
        "5/10 */2 * * 7",
        "0 0 29 2 *",
        "0 0 13 * fri",
        "  0   2 * * 0  ",
    ],
)
def test_an_expression_that_can_be_used_is_returned_unchanged(text: str) -> None:
    assert check_cron(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "mon"),
        ("sat-mon", "sat sun mon"),
        ("5-0", "fri sat sun"),
        ("tue,SAT-mon", "tue sat sun mon"),
        ("1-7/2", "mon wed fri sun"),
        ("0-7", "mon tue wed thu fri sat sun"),
    ],
)
def test_weekdays_are_those_of_crontab(text: str, expected: str) -> None:
    assert weekdays(text) == set(expected.split())


def test_weekdays_count_from_sunday() -> None:
    for number, weekday in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"]):
        assert weekdays(str(number)) == {weekday}


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("* * *", 0, "found 3"),
        ("", 0, "found 0"),
        ("@daily", 0, "found 1"),
        ("60 * * * *", 0, "The minute '60' cannot be used; expected a value from 0 to 59"),
        ("0 24 * * *", 2, "The hour '24' cannot be used; expected a value from 0 to 23"),
        ("0 0 0 * *", 4, "The day of the month '0' cannot be used"),
        ("0 0 * 13 *", 6, "The month '13' cannot be used"),
        ("0 0 * * 8", 8, "The day of the week '8' cannot be used; expected a value from 0 to 7 (0 and 7 are Sunday)"),
        ("0 0 * * mon,fr", 8, "The day of the week 'fr' cannot be used"),
        ("0 0 * juli *", 6, "or jan to dec"),
        ("9-5 * * * *", 0, "a range such as 1-5 with the smaller value first"),
        ("0 0 * * fri-mon/2", 8, "the smaller value first"),
        ("*/0 * * * *", 0, "The minute '*/0' cannot be used"),
        ("*/60 * * * *", 0, "has a step of 60; expected 1 to 59"),
        ("1,,2 * * * *", 0, "The minute '' cannot be used"),
        ("0 0 31 2,4 *", 4, "this would never run"),
        ("0 0 L * *", 4, "cannot be used"),
        ("0 0 * * 5L", 8, "cannot be used"),
        ("0 0 * * 5#1", 8, "cannot be used"),
    ],
)
def test_a_mistake_names_its_field(text: str, position: int, words: str) -> None:
    with pytest.raises(CronError) as caught:
        check_cron(text)
    assert caught.value.position == position
    assert words in str(caught.value)


@given(st.lists(_FIELDS, min_size=5, max_size=5).map(" ".join))
def test_whatever_passes_can_be_scheduled(text: str) -> None:
    try:
        check_cron(text)
    except CronError:
        return
    assert next_cron_run(text, "Europe/Berlin", after=0) > 0
