"""Distributions with plug-ins, installed into folders on the import path, like unpacked wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


class Installer:
    """Installs distributions for one test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch

    def install(
        self, distribution: str, module: str, code: str, group: str = "ingestd.connectors", **points: str
    ) -> None:
        site = self._folder / distribution
        information = site / f"{distribution.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = "".join(f"{name} = {module}:{attribute}\n" for name, attribute in points.items())
        (information / "entry_points.txt").write_text(f"[{group}]\n{lines}")
        (site / f"{module}.py").write_text(code)
        self._monkeypatch.syspath_prepend(str(site))
        self._monkeypatch.delitem(sys.modules, module, raising=False)
