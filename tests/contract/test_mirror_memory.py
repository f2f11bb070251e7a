"""The mirror in memory, which delivery tests use, keeps the promises of the port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from tests.contract.mirror_deliverable import SINK, DeliverableSuite, Stage
from tests.contract.mirror_drift import DriftStage, DriftSuite
from tests.contract.mirror_rejections import RejectionStage, RejectionSuite
from tests.support.memory_mirror import Desired, MemoryMirror


class MemoryStage(DriftStage):
    def __init__(self) -> None:
        self._mirror = MemoryMirror()

    @property
    def deliverable(self) -> DeliveryStore:
        return cast("DeliveryStore", self._mirror)

    @property
    def rejections(self) -> Observer:
        return cast("Observer", self._mirror)

    @property
    def keeper(self) -> RejectedStore:
        return cast("RejectedStore", self._mirror)

    @property
    def reader(self) -> Observer:
        return cast("Observer", self._mirror)

    @property
    def checker(self) -> DriftStore:
        return cast("DriftStore", self._mirror)

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
