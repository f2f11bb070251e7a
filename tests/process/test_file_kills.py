"""The connector `file` passes the suite of kills: a table that is replaced as a whole while the daemon is killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ingestd.sdk.testing import KillConformance, KillRig


class ReplacedTableRig(KillRig):
    """Each version of the table changes one row and has a further one."""

    kills: ClassVar[int] = 2

    def __init__(self, folder: Path) -> None:
        self._path = folder / "budget.csv"
        self._rows: dict[str, str] = {}

    def source(self) -> Mapping[str, Any]:
        return {"connector": "file", "path": str(self._path), "settle_seconds": 0}

    def entries(self) -> Mapping[str, Any]:
        return {"key": "{part}", "value": "{mass}"}

    def step(self, number: int) -> None:
        self._rows |= {f"P{number}": f"{number}.10", "shared": str(number)}
        part = self._path.with_suffix(".part")
        part.write_text("part,mass\n" + "".join(f"{name},{value}\n" for name, value in self._rows.items()))
        part.replace(self._path)

    def wanted(self) -> Mapping[str, str]:
        return self._rows


class TestKills(KillConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> KillRig:
        return ReplacedTableRig(tmp_path)
