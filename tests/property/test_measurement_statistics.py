"""Statistics of pieces equal those of numpy for the whole channel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.formats.measurement import Statistic
from connectors.formats.measurement.channels import sample_text, sample_texts
from connectors.formats.measurement.statistics import ChannelStatistics

ALL: tuple[Statistic, ...] = ("count", "min", "max", "mean", "rms", "first", "last")
FLOATS = st.floats(min_value=-1e100, max_value=1e100)
CASES = st.one_of(
    st.tuples(st.just("f8"), st.lists(FLOATS, min_size=1, max_size=60)),
    st.tuples(
        st.just("f4"), st.lists(st.floats(width=32, min_value=-(2.0**60), max_value=2.0**60), min_size=1, max_size=60)
    ),
    st.tuples(st.just(">i4"), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=60)),
    st.tuples(st.just("u8"), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60)),
)


@given(case=CASES, cuts=st.lists(st.integers(0, 60), max_size=4))
def test_the_statistics_of_any_pieces_are_those_of_numpy(case: tuple[str, list[Any]], cuts: list[int]) -> None:
    samples = np.array(case[1], dtype=case[0])
    statistics = ChannelStatistics()
    for piece in np.split(samples, sorted(cut for cut in cuts if cut <= samples.size)):
        statistics.add(piece)
    found = statistics.texts(ALL)
    exact = samples.astype(np.longdouble)
    assert found["count"] == str(samples.size)
    for name, value in {"min": samples.min(), "max": samples.max(), "first": samples[0], "last": samples[-1]}.items():
        assert samples.dtype.type(found[name]) == value
        assert found[name] == sample_text(value)
    scale = float(np.abs(exact).max())
    assert math.isclose(float(found["mean"]), float(exact.mean()), rel_tol=1e-15, abs_tol=scale * 1e-17)
    assert math.isclose(float(found["rms"]), float(np.sqrt(np.square(exact).mean())), rel_tol=1e-15)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_the_text_of_a_float32_reads_back_as_it_and_is_the_shortest(values: list[float]) -> None:
    samples = np.array(values, dtype=np.float32)
    for sample, text in zip(samples, sample_texts(samples), strict=True):
        assert np.float32(text) == sample
        digits = np.format_float_scientific(sample, unique=True, trim="-").partition("e")[0]
        assert len(text.lstrip("-").partition("e")[0].replace(".", "").strip("0")) <= len(
            digits.lstrip("-").replace(".", "")
        )


def test_missing_samples_are_counted_and_an_empty_channel_has_no_statistics_but_its_count() -> None:
    statistics = ChannelStatistics()
    assert statistics.texts(ALL) == {"count": "0"}
    statistics.add(np.array(["NaT", "2026-01-02"], dtype="datetime64[ms]"))
    assert statistics.texts(("min", "first")) == {"min": "2026-01-02T00:00:00", "first": "", "nan_count": "1"}


def test_infinite_samples_have_infinite_statistics() -> None:
    statistics = ChannelStatistics()
    statistics.add(np.array([np.inf, 1.0, -np.inf]))
    assert statistics.texts(("min", "max", "mean", "rms")) == {"min": "-inf", "max": "inf", "mean": "NaN", "rms": "inf"}


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_the_mean_of_many_small_samples_is_exact(size: int) -> None:
    statistics = ChannelStatistics()
    samples = np.full(size, 0.1)
    for piece in np.split(samples, 10):
        statistics.add(piece)
    assert statistics.texts(("mean", "rms")) == {"mean": "0.1", "rms": "0.1"}
