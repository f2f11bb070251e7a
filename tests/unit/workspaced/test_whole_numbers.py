from __future__ import annotations

from decimal import Decimal

import pytest

from workspaced.core.fields import Fields
from workspaced.core.problems import Invalid
from workspaced.resources.api_keys.rules import read_grace_ms
from workspaced.resources.webhooks.rules import read_rotation


@pytest.mark.parametrize("value", [7, Decimal("7.0"), Decimal("0.7e1")])
def test_a_whole_number_may_be_written_with_a_fraction_of_zero(value: object) -> None:
    members = Fields({"n": value})
    assert members.whole("n", lowest=0, highest=7) == 7
    assert members.finish() == ()


@pytest.mark.parametrize("value", [8, -1, Decimal("6.5"), "7", True, Decimal("1e400")])
def test_what_is_no_whole_number_within_the_bounds_is_a_mistake(value: object) -> None:
    members = Fields({"n": value})
    assert members.whole("n", lowest=0, highest=7) is None
    with pytest.raises(Invalid, match=r"/n (must be|may have)"):
        members.finish()


def test_periods_of_grace_are_whole_numbers_of_seconds() -> None:
    body = {"gracePeriodSeconds": Decimal("60.0")}
    assert read_grace_ms(body) == (60_000, ())
    assert read_rotation(body) == (60, ())
    assert read_rotation({"gracePeriodSeconds": None}) == read_rotation({})
