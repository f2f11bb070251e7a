"""Names in the packages: a class name occurs once, and a module is a noun unless the gerund is the standard term."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGES = ("ingestd", "connectors", "workspaced")
STANDARD_TERMS = {
    *("batching", "blocking", "coding", "decoding", "encoding", "listing", "logging", "mapping", "packing", "paging"),
    *(
        "parsing",
        "pending",
        "pruning",
        "rendering",
        "reporting",
        "routing",
        "streaming",
        "string",
        "testing",
        "tracing",
        "wiring",
    ),
}
"""Words in -ing that name a thing in this field, or are no gerunds."""


def modules() -> list[PurePosixPath]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *(f"{package}/**.py" for package in PACKAGES)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = [PurePosixPath(name) for name in listed.split("\0") if name and (ROOT / name).exists()]
    assert {path.parts[0] for path in found} == set(PACKAGES)
    return found


def test_a_class_name_occurs_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path))
    repeated = {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}
    assert not repeated, repeated


def test_a_module_or_package_is_named_by_a_noun() -> None:
    named = [part for path in modules() for part in path.with_suffix("").parts[1:]]
    assert len(set(named)) > 100
    words = {(name, word) for name in named for word in name.split("_") if word.endswith("ing")}
    gerunds = sorted({name for name, word in words if word not in STANDARD_TERMS})
    assert not gerunds, " ".join(gerunds)
