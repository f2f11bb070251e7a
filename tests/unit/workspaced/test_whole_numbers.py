from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import pytest

from workspaced.core.members import Body, Whole, read_body
from workspaced.core.problems import Invalid
from workspaced.resources.api_keys.rules import KeyRotation
from workspaced.resources.webhooks.values import SecretRotation
from workspaced.settings.model import Limits


class _Sample(Body):
    n: Annotated[int, Whole(highest=7)]


@pytest.mark.parametrize("value", [7, Decimal("7.0"), Decimal("0.7e1")])
def test_a_whole_number_may_have_a_zero_fraction(value: object) -> None:
    assert read_body(_Sample, {"n": value}, Limits())[0].n == 7


@pytest.mark.parametrize("value", [8, -1, Decimal("6.5"), "7", True, Decimal("1e400")])
def test_an_invalid_or_out_of_range_whole_number_is_a_mistake(value: object) -> None:
    with pytest.raises(Invalid, match=r"/n (must be|may have)"):
        read_body(_Sample, {"n": value}, Limits())


@pytest.mark.parametrize("body_type", [KeyRotation, SecretRotation])
def test_grace_periods_are_whole_numbers_of_seconds(body_type: type[KeyRotation | SecretRotation]) -> None:
    assert read_body(body_type, {"gracePeriodSeconds": Decimal("60.0")}, Limits()) == (
        body_type.model_construct(seconds=60),
        (),
    )
    assert read_body(body_type, {"gracePeriodSeconds": None}, Limits()) == read_body(body_type, {}, Limits())
