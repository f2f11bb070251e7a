from __future__ import annotations

from pathlib import Path

import pytest

from bench.soak import BYTES_A_STATEMENT, MEASURES, Samples, bytes_a_statement, report, trend

TIMES = [float(second) for second in range(0, 120, 2)]
ROWS = [150 * int(second) for second in TIMES]


def test_a_trend_is_of_the_second_half_so_that_warming_up_does_not_count() -> None:
    warm = [min(second, 30.0) * 2 + 60 for second in TIMES]
    found = trend(TIMES, warm)
    assert (found.median, round(found.rise, 6)) == (120.0, 0.0)
    assert found.is_flat(MEASURES["memory"])


def test_a_leak_of_a_tenth_in_half_of_the_time_is_not_flat() -> None:
    leak = [100 + second / 6 for second in TIMES]
    assert trend(TIMES, leak).rise == pytest.approx(58 / 6)
    assert not trend(TIMES, leak).is_flat(MEASURES["memory"])


def test_connections_that_come_and_go_are_no_leak_and_one_that_stays_is() -> None:
    busy_at_the_end = [34.0 + (5 if second > 100 and second % 12 else 0) for second in TIMES]
    assert trend(TIMES, busy_at_the_end).is_flat(MEASURES["descriptors"])
    kept = [value + second / 6 for value, second in zip(busy_at_the_end, TIMES, strict=True)]
    assert not trend(TIMES, kept).is_flat(MEASURES["descriptors"])


def test_memory_that_is_returned_is_flat() -> None:
    assert trend(TIMES, [200 - second for second in TIMES]).is_flat(MEASURES["memory"])


def test_the_report_names_what_rises(capsys: pytest.CaptureFixture[str]) -> None:
    samples = Samples(
        times=list(TIMES), rows=ROWS, databases={"daemon": [1.0] * len(TIMES), "service": [1.0] * len(TIMES)}
    )
    samples.series["daemon", "memory"] = [100.0] * len(TIMES)
    assert report(samples)
    samples.series["service", "descriptors"] = [20 + second for second in TIMES]
    assert not report(samples)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "RISES" in line]
    assert line.split()[:2] == ["service", "descriptors"]


def test_memory_may_rise_with_its_database_but_not_more(capsys: pytest.CaptureFixture[str]) -> None:
    rising = [100 + second / 6 for second in TIMES]
    samples = Samples(times=list(TIMES), rows=ROWS, databases={"daemon": rising})
    samples.series["daemon", "memory"] = rising
    assert report(samples)
    samples.series["daemon", "memory"] = [100 + second / 2 for second in TIMES]
    assert not report(samples)
    output = capsys.readouterr().out
    assert "with its database" in output
    assert "RISES" in output


def test_a_database_larger_than_its_cache_explains_no_more_than_the_cache() -> None:
    rising = [100 + second for second in TIMES]
    samples = Samples(times=list(TIMES), rows=ROWS, databases={"daemon": rising})
    samples.series["daemon", "memory"] = rising
    assert not report(samples)


def test_a_leak_with_each_row_of_the_log_is_found_although_it_is_small_beside_the_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples = Samples(times=list(TIMES), rows=ROWS, databases={"daemon": [1.0] * len(TIMES)})
    samples.series["daemon", "memory"] = [100 + rows * 443 / 2**20 for rows in ROWS]
    assert trend(TIMES, samples.series["daemon", "memory"]).is_flat(MEASURES["memory"])
    assert not report(samples)
    assert "bytes of each row of the log" in capsys.readouterr().out


def test_a_statement_leaves_nothing_behind(tmp_path: Path) -> None:
    assert bytes_a_statement(tmp_path, statements=20_000) <= BYTES_A_STATEMENT


def test_too_few_samples_have_no_trend() -> None:
    with pytest.raises(ValueError, match="at least four samples"):
        trend([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
