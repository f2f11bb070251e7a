from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import UNSET

from workspaced.core.fields import Fields
from workspaced.core.members import Slot, Whole, read_body
from workspaced.core.problems import Invalid
from workspaced.resources.api_keys.rules import KeyRotation
from workspaced.resources.webhooks.values import SecretRotation
from workspaced.settings.model import Limits


@pytest.mark.parametrize("value", [7, Decimal("7.0"), Decimal("0.7e1")])
def test_a_whole_number_may_have_a_zero_fraction(value: object) -> None:
    members = Fields({})
    assert Whole(highest=7).read(Slot(members, "n", Limits()), value) == 7
    assert members.finish() == ()


@pytest.mark.parametrize("value", [8, -1, Decimal("6.5"), "7", True, Decimal("1e400")])
def test_an_invalid_or_out_of_range_whole_number_is_a_mistake(value: object) -> None:
    members = Fields({})
    assert Whole(highest=7).read(Slot(members, "n", Limits()), value) is UNSET
    with pytest.raises(Invalid, match=r"/n (must be|may have)"):
        members.finish()


@pytest.mark.parametrize("body_type", [KeyRotation, SecretRotation])
def test_grace_periods_are_whole_numbers_of_seconds(body_type: type[KeyRotation | SecretRotation]) -> None:
    assert read_body(body_type, {"gracePeriodSeconds": Decimal("60.0")}, Limits()) == (body_type(seconds=60), ())
    assert read_body(body_type, {"gracePeriodSeconds": None}, Limits()) == read_body(body_type, {}, Limits())
