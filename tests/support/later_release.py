"""A later release of workspaced: a copy of this package with further migrations, run by a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import workspaced

_DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Release:
    """A release; ``environment`` makes ``python -m workspaced`` run it."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        # Else `python -m` finds the package of the working directory first.
        return {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "workspaced", *words],
            capture_output=True,
            text=True,
            timeout=_DEADLINE_SECONDS,
            env={**os.environ, **self.environment},
            check=False,
        )


def later_release(folder: Path, *steps: str) -> Release:
    """Write a release with ``steps`` after those of this one; each is the text of its file, for both databases."""
    package = folder / "workspaced"
    shutil.copytree(Path(workspaced.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for dialect in ("sqlite", "postgres"):
        migrations = package / "storage" / "migrations" / dialect
        for number, step in enumerate(steps, len(list(migrations.glob("*.sql"))) + 1):
            (migrations / f"{number:04}_later.sql").write_text(step)
    return Release(folder)
