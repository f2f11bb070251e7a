"""The double that delivery is tested with keeps the promises that it stands for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ingestd.mirror.port import Deliverable
from tests.contract.mirror_deliverable import SINK, DeliverableSuite, Stage
from tests.support.memory_mirror import Desired, MemoryMirror


class MemoryStage(Stage):
    def __init__(self) -> None:
        self._mirror = MemoryMirror()

    @property
    def deliverable(self) -> Deliverable:
        return self._mirror

    def desire(self, entries: Mapping[str, Desired | None]) -> int:
        return self._mirror.desire(SINK, entries)


class TestMemoryMirror(DeliverableSuite):
    @pytest.fixture
    def stage(self) -> Stage:
        return MemoryStage()
