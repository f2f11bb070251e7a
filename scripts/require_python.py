"""Check whether a version of Python can run this project, before pip fails with a long message. Runs on every Python 3.

python3 scripts/require_python.py    # exit code 0: the version is usable; else a sentence on standard error
"""

import importlib.util
import re
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUNDS = re.compile(r'^requires-python = ">=3\.([0-9]+),<3\.([0-9]+)"', re.MULTILINE)


def refusal(major: int, minor: int, project: str, *, has_venv: bool) -> str:
    """Return why a version of Python can't be used, or an empty text. ``project``: the text of pyproject.toml."""
    first, after = map(int, BOUNDS.findall(project)[0])
    if not (3, first) <= (major, minor) < (3, after):
        return (
            f"ingestd needs Python 3.{first} to 3.{after - 1}, and this is Python {major}.{minor}. "
            f"Install one of them, and name it, such as in: make demo PYTHON=python3.{after - 1}"
        )
    if not has_venv:
        return (
            "This Python can't make a virtual environment. Install Debian's package python3-venv, and run make again."
        )
    return ""


if __name__ == "__main__":
    can_make = all(importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip"))
    sys.exit(refusal(*sys.version_info[:2], PROJECT.read_text(encoding="utf-8"), has_venv=can_make) or 0)
