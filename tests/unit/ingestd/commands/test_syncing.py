from __future__ import annotations

import pytest

from ingestd.commands.one_shot_sync import SyncReport
from ingestd.core.address import SinkAddress
from ingestd.daemon.exit_codes import ExitCode
from ingestd.delivery import LaneReport
from ingestd.intake import PassReport

GOOD = PassReport(pipeline="a")
AWAY = PassReport(pipeline="a", away="gone")
BROKEN = PassReport(pipeline="a", broken="The folder may not be listed.")
WITH_REJECTED_PARTITION = PassReport(pipeline="a", rejected=("a.csv: no such column",))
STUCK = LaneReport(sink=SinkAddress(workspace="w", by="label", name="s"), status="paused", since=0.0, sentence="key")


@pytest.mark.parametrize(
    ("passes", "pending", "rejected", "interrupted", "expected"),
    [
        ((GOOD,), 0, 0, "", ExitCode.DONE),
        ((), 0, 0, "", ExitCode.DONE),
        ((GOOD,), 0, 1, "", ExitCode.REJECTED),
        ((WITH_REJECTED_PARTITION, GOOD), 0, 1, "", ExitCode.REJECTED),
        ((GOOD,), 1, 1, "", ExitCode.PENDING),
        ((GOOD,), 0, 0, "timeout", ExitCode.PENDING),
        ((GOOD,), 0, 1, "signal", ExitCode.PENDING),
        ((GOOD, AWAY), 1, 1, "timeout", ExitCode.SOURCE_FAILED),
        ((BROKEN, GOOD), 0, 0, "", ExitCode.SOURCE_FAILED),
    ],
)
def test_the_first_applicable_exit_code_is_returned(
    passes: tuple[PassReport, ...], pending: int, rejected: int, interrupted: str, expected: ExitCode
) -> None:
    report = SyncReport(
        passes=passes,
        delivered=5,
        pending=pending,
        rejected=rejected,
        stuck=(STUCK,) if pending else (),
        interrupted=interrupted,
    )
    assert report.exit_code is expected
