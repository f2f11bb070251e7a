"""SQL by name: statements are in ``.sql`` files, each under a ``-- name: …`` line, never in Python code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_MARK = re.compile(r"^-- (?P<kind>name|hold): (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)


def load_statements(package: str, resource: str, *, kind: str = "name") -> Mapping[str, str]:
    """Return the statements of one file of a package, by name. ``kind``: the word before the name in the ``--`` line.

    Raises:
        ValueError: a name occurs twice.
    """
    text = files(package).joinpath(resource).read_text(encoding="utf-8")
    marks = list(_MARK.finditer(text))
    found: dict[str, str] = {}
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark["kind"] != kind:
            continue
        if mark["name"] in found:
            raise ValueError(f"{resource} names '{mark['name']}' twice")
        found[mark["name"]] = text[mark.end() : following.start() if following else len(text)].strip()
    return found
