"""A later release of workspaced: a copy of the package with further migrations, which runs as a separate process."""

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
    """A release in ``folder``. With ``environment``, ``python -m workspaced`` runs this release."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        # Without PYTHONSAFEPATH, `python -m` finds the package in the working directory first.
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
    """Write a release with further migrations. ``steps``: the text of each migration file, for both databases."""
    package = folder / "workspaced"
    shutil.copytree(Path(workspaced.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for dialect in ("sqlite", "postgres"):
        migrations = package / "storage" / "migrations" / dialect
        for number, step in enumerate(steps, len(list(migrations.glob("*.sql"))) + 1):
            (migrations / f"{number:04}_later.sql").write_text(step)
    return Release(folder)
