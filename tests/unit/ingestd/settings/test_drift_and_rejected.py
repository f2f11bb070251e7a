"""Settings about drift and about rejected entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.settings.drift import DriftPlan
from ingestd.settings.schedule import Every
from tests.support.sample_connectors import GOOD, load, mistakes

DAILY = Every(seconds=86_400)


def with_drift(text: str) -> str:
    return f"{GOOD}    drift: {text}\n"


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("report", DriftPlan(mode="report", every=DAILY)),
        ("adopt", DriftPlan(mode="adopt", every=DAILY)),
        ("{mode: repair, every: 6h}", DriftPlan(mode="repair", every=Every(seconds=21_600))),
        ("{mode: repair, added: remove}", DriftPlan(mode="repair", every=DAILY, remove_added=True)),
        ("{}", DriftPlan(mode="report", every=DAILY)),
    ],
)
def test_drift_is_a_word_or_a_mapping_with_interval_and_mode(tmp_path: Path, text: str, plan: DriftPlan) -> None:
    assert load(with_drift(text), tmp_path).pipelines[0].drift == plan


def test_by_default_a_sink_is_read_back_only_on_request(tmp_path: Path) -> None:
    assert load(GOOD, tmp_path).pipelines[0].drift == DriftPlan(mode="report", every=None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("repiar", "Did you mean 'repair'?"),
        ("3", "Expected report, repair, adopt or {mode: repair, every: 6h}"),
        ("{mode: fix}", "repair"),
        ("{every: 5}", "Expected a duration with its unit"),
        ("{every: 2 weeks}", "Expected a duration such as 15m"),
        ("{mode: repair, addded: remove}", "added"),
    ],
)
def test_a_mistake_about_drift_is_reported_with_its_location(tmp_path: Path, text: str, sentence: str) -> None:
    (mistake,) = mistakes(with_drift(text), tmp_path)
    assert mistake.startswith("ingestd.yaml:8:")
    assert sentence in mistake


def test_all_rejected_entries_are_kept_by_default(tmp_path: Path) -> None:
    kept = load(GOOD, tmp_path).rejected
    assert (kept.keep_days, kept.keep_rows) == (None, None)
    bounded = load(f"rejected: {{keep_days: 90, keep_rows: 1000}}\n{GOOD}", tmp_path).rejected
    assert (bounded.keep_days, bounded.keep_rows) == (90, 1000)
    for text in ("{keep_days: 0}", "{keep_rows: 0}", "{keep_rows: many}", "{keep_weeks: 3}"):
        assert len(mistakes(f"rejected: {text}\n{GOOD}", tmp_path)) == 1
