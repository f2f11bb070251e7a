"""Operands of aggregates: means without end, dates, and the texts of sums. The digest of a stage."""

from __future__ import annotations

import hashlib
import json

import msgspec
import polars as pl
import pytest

from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.groups.operand import SCALE, mean_text, read_operands, sum_text


@pytest.mark.parametrize(
    ("total", "count", "decimals", "text"),
    [
        (1, 3, None, "0.333333333333333333"),
        (2, 3, None, "0.666666666666666667"),
        (-2, 3, None, "-0.666666666666666667"),
        (1, 4, None, "0.25"),
        (0, 7, None, "0"),
        (12345678901234567, 3, None, "4115226300411522.333333333333333333"),
        (10**25, 1, None, "1" + "0" * 25),
        (1, 3, 2, "0.33"),
        (1, 8, 2, "0.13"),
        (-1, 8, 2, "-0.13"),
        (3, 1, 2, "3.00"),
        (3, 2, 0, "2"),
    ],
)
def test_a_mean_is_exact_or_rounded_once(total: int, count: int, decimals: int | None, text: str) -> None:
    assert mean_text(total * SCALE, count, decimals) == text


def test_a_small_mean_without_end_keeps_fifteen_significant_digits() -> None:
    assert mean_text(4, 3, None) == "0.00000000000000000133333333333333"


def test_a_mean_with_an_end_has_all_its_digits() -> None:
    assert mean_text(1, 2**40, None) == f"{5**40:058d}".join(["0.", ""])


@pytest.mark.parametrize(
    ("scaled", "text"),
    [
        (0, "0"),
        (1, "0.000000000000000001"),
        (-SCALE // 2, "-0.5"),
        (10**44 + 1, "1" + "0" * 26 + ".000000000000000001"),
    ],
)
def test_a_sum_loses_no_digit(scaled: int, text: str) -> None:
    assert sum_text(scaled) == text


def test_the_digest_of_a_stage_without_optional_names_is_that_of_the_version_before_them() -> None:
    spec = GroupSpec(by=("part",), take=(("n", AggregateSpec(function="count", field=None)),))
    count = {"function": "count", "field": None, "order": None, "compared": "number", "decimals": None}
    text = json.dumps(["m", {"by": ["part"], "take": [["n", count]], "where": None, "let": []}], sort_keys=True)
    assert Aggregation(spec).digest_with("m") == hashlib.sha256(text.encode()).hexdigest()
    optional = msgspec.structs.replace(spec, optional=("part",))
    assert Aggregation(optional).digest_with("m") != Aggregation(spec).digest_with("m")


def test_dates_are_compared_in_their_own_kind_only() -> None:
    texts = pl.Series(
        [
            "2026-11-07",
            "2026-11-07T00:00:00.000001",
            "2026-11-07T01:00:00+01:00",
            "2026-11-07T00:00:00Z",
            "07.11.2026",
            None,
        ]
    )
    midnight = 1_794_009_600_000_000
    assert read_operands(texts, "date").to_list() == [midnight, midnight + 1, None, None, None, None]
    assert read_operands(texts, "instant").to_list() == [None, None, midnight, midnight, None, None]


@pytest.mark.parametrize(
    "text", ["2026-02-30", "20261107", "2026-11-07T00:00:00.1234567", "2026-11-07T24:00", "2026-W45-6"]
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert read_operands(pl.Series([text]), "date").to_list() == [None]
