"""The mirror in memory, which delivery tests use, keeps the promises of the port."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ingestd.mirror.drift import DriftKeeper, DriftReader
from ingestd.mirror.port import Deliverable
from ingestd.mirror.rejections import RejectionKeeper, RejectionReader
from tests.contract.mirror_deliverable import SINK, DeliverableSuite, Stage
from tests.contract.mirror_drift import DriftStage, DriftSuite
from tests.contract.mirror_rejections import RejectionStage, RejectionSuite
from tests.support.memory_mirror import Desired, MemoryMirror


class MemoryStage(DriftStage):
    def __init__(self) -> None:
        self._mirror = MemoryMirror()

    @property
    def deliverable(self) -> Deliverable:
        return self._mirror

    @property
    def rejections(self) -> RejectionReader:
        return self._mirror

    @property
    def keeper(self) -> RejectionKeeper:
        return self._mirror

    @property
    def reader(self) -> DriftReader:
        return self._mirror

    @property
    def checker(self) -> DriftKeeper:
        return self._mirror

    def desire(self, entries: Mapping[str, Desired | None]) -> int:
        return self._mirror.desire(SINK, entries)


class TestMemoryMirror(DeliverableSuite):
    @pytest.fixture
    def stage(self) -> Stage:
        return MemoryStage()


class TestMemoryMirrorRejections(RejectionSuite):
    @pytest.fixture
    def stage(self) -> RejectionStage:
        return MemoryStage()


class TestMemoryMirrorDrift(DriftSuite):
    @pytest.fixture
    def stage(self) -> DriftStage:
        return MemoryStage()
