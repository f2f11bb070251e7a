"""A short campaign; `make campaign SEED=n` runs longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.world import run_campaign


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_sink_is_exact_after_random_changes_kills_and_faults(tmp_path: Path) -> None:
    log = run_campaign(tmp_path, seed=1, steps=25)
    assert log[-1].endswith("equal")
