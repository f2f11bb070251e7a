from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.schedule import next_run
from ingestd.settings import Cron
from ingestd.settings.cron import CronError, normal_cron

_NUMBERS = st.integers(0, 64).map(str)
_VALUES = st.one_of(_NUMBERS, st.sampled_from(["jan", "dec", "mon", "sun", "sat", "x"]))
_ITEMS = st.builds(
    lambda first, last, step: f"{first}{last}{step}",
    st.one_of(st.just("*"), _VALUES),
    st.one_of(st.just(""), _VALUES.map("-{}".format)),
    st.one_of(st.just(""), _NUMBERS.map("/{}".format)),
)
_FIELDS = st.one_of(st.just("*"), st.lists(_ITEMS, min_size=1, max_size=2).map(",".join))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0 2 * * *", "0 2 * * *"),
        ("*/15 8-17 * * mon-fri", "*/15 8-17 * * mon,tue,wed,thu,fri"),
        ("0 0 1 JAN,jul *", "0 0 1 jan,jul *"),
        ("5/10 */2 * * 7", "5/10 */2 * * sun"),
        ("0 0 * * 1", "0 0 * * mon"),
        ("0 0 * * sat-mon", "0 0 * * sun,mon,sat"),
        ("0 0 * * 5-0", "0 0 * * sun,fri,sat"),
        ("0 0 * * 1-7/2", "0 0 * * sun,mon,wed,fri"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("  0   2 * * 0  ", "0 2 * * sun"),
    ],
)
def test_weekdays_are_replaced_by_names_and_the_rest_is_unchanged(text: str, normal: str) -> None:
    assert normal_cron(text) == normal


def test_the_scheduler_uses_the_weekdays_of_cron() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    for number, weekday in enumerate(["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]):
        due = next_run(Cron(expression=normal_cron(f"0 2 * * {number}"), timezone="UTC"), after=noon)
        assert due is not None
        assert f"{datetime.fromtimestamp(due, UTC):%A}".lower() == weekday


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("* * *", 0, "found 3"),
        ("", 0, "found 0"),
        ("@daily", 0, "found 1"),
        ("60 * * * *", 0, "The minute 60 is out of range; expected 0 to 59."),
        ("0 24 * * *", 2, "The hour 24 is out of range"),
        ("0 0 0 * *", 4, "The day of the month 0 is out of range"),
        ("0 0 * 13 *", 6, "The month 13 is out of range"),
        ("0 0 * * 8", 8, "The day of the week 8 is out of range"),
        ("0 0 * * fr", 8, "The day of the week 'fr' is unknown. Did you mean 'fri'?"),
        ("0 0 * juli *", 6, "Did you mean 'jul'?"),
        ("9-5 * * * *", 0, "runs backwards"),
        ("*/0 * * * *", 0, "has a step of 0; expected 1 to 59"),
        ("*/60 * * * *", 0, "has a step of 60"),
        ("0 0 * jan-3 *", 6, "mixes names with numbers"),
        ("1,,2 * * * *", 0, "can't be read"),
        ("0 0 31 2,4 *", 4, "this would never run"),
        ("0 0 13 * fri", 4, "Both the day of the month and the day of the week are restricted"),
        ("0 0 L * *", 4, "is unknown"),
    ],
)
def test_a_mistake_names_its_field(text: str, position: int, words: str) -> None:
    with pytest.raises(CronError) as caught:
        normal_cron(text)
    assert caught.value.position == position
    assert words in str(caught.value)


@given(st.lists(_FIELDS, min_size=5, max_size=5).map(" ".join))
def test_every_accepted_expression_can_be_scheduled(text: str) -> None:
    try:
        normal = normal_cron(text)
    except CronError:
        return
    assert normal_cron(normal) == normal
    assert next_run(Cron(expression=normal, timezone="UTC"), after=0) is not None
