"""Writes the package of `ingestd connector new`: a working connector, its tests and its CI.

The files next to this module are templates for `string.Template`. Every package has the files in ``common``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Kind:
    """Texts for the README of a kind of connector: what the connector does, the name of its example file, and a guarantee."""

    what: str
    example: str
    guarantee: str


KINDS: Mapping[str, Kind] = {
    "snapshot": Kind(
        "it reads all lines `name = value` of a text file",
        "values.txt",
        "The sink has an entry for each line of the file. If a line is removed, its entry stays in the sink.",
    ),
    "follow": Kind(
        "it reads the lines `name = value` that are appended to a text file",
        "values.log",
        "Every complete line is read once, also after a crash.",
    ),
    "consume": Kind(
        "each file `*.msg` of a folder is a message, and is deleted after it is stored",
        "spool",
        "A message is deleted only after its record is stored, so a crash loses no message.",
    ),
}


class PackageRefused(Exception):
    """The package can't be written; the message is a sentence."""


def write_package(name: str, kind: str, parent: Path) -> Path:
    """Write a new package into ``parent`` and return its folder, ``ingestd-NAME``.

    Raises:
        PackageRefused: the name can't be used, or the folder exists.
        OSError: a file can't be written.
    """
    if not _NAME.fullmatch(name):
        raise PackageRefused(
            f"'{name}' is no name of a connector: use small letters, digits and single hyphens, as in oven-log."
        )
    module = name.replace("-", "_")
    folder = parent / f"ingestd-{name}"
    if folder.exists():
        raise PackageRefused(f"{folder} exists already. Remove it, or choose another name.")
    described = KINDS[kind]
    values = {
        "name": name,
        "module": module,
        "title": "".join(part.capitalize() for part in name.split("-")),
        "what": described.what,
        "example": described.example,
        "guarantee": described.guarantee,
    }
    for path, content in _files(kind, module, values):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return folder


def _files(kind: str, module: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    places = {
        "common/pyproject.toml.txt": "pyproject.toml",
        "common/README.md.txt": "README.md",
        "common/gitignore.txt": ".gitignore",
        "common/ci.yml.txt": ".github/workflows/check.yml",
        "common/init.py.txt": f"{module}/__init__.py",
        f"{kind}/connector.py.txt": f"{module}/connector.py",
        f"{kind}/test.py.txt": f"tests/test_{module}.py",
    }
    for source, target in places.items():
        yield target, Template(files(__name__).joinpath(source).read_text(encoding="utf-8")).substitute(values)
    yield f"{module}/py.typed", ""
