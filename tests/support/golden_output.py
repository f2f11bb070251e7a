"""Output of commands compared with golden files, so that a reworded sentence appears in a review."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.engineering_folder import timeless

_FOLDER = Path(__file__).parents[1] / "golden" / "cli" / "output"


def check_golden(name: str, text: str) -> None:
    """Compare ``text``, with variable parts masked, with the file; INGESTD_WRITE_GOLDEN=1 rewrites the file."""
    file = _FOLDER / f"{name}.txt"
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(timeless(text), encoding="utf-8")
    assert timeless(text) == file.read_text(encoding="utf-8")
