"""SQL by name: statements live in ``.sql`` files, each under a ``-- name: …`` line, never in Python text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)


def load_statements(package: str, resource: str) -> Mapping[str, str]:
    """The statements of one file of a package, by name.

    Raises:
        ValueError: a name stands twice.
    """
    text = files(package).joinpath(resource).read_text(encoding="utf-8")
    marks = list(_NAME.finditer(text))
    statements: dict[str, str] = {}
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark["name"] in statements:
            raise ValueError(f"{resource} of {package} names '{mark['name']}' twice")
        statements[mark["name"]] = text[mark.end() : following.start() if following else len(text)].strip()
    return statements
