"""Parts of the lock file: the locked versions, with hashes, of what some of the extras need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_BLOCK = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[.*\])?==.*(?:\n[ \t]+.*)*", re.MULTILINE)


def closure(requirements: Iterable[str], *, without: Iterable[str] = ()) -> list[Distribution]:
    """Return the installed distributions that the requirements need, also indirectly; those of ``without`` are not included."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        for extra in requirement.extras | {""}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            found[name] = distribution(name)
            needs = map(Requirement, found[name].requires or ())
            left += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    return [one for name, one in sorted(found.items()) if name not in set(without)]


def locked_requirements(lock: str, requirements: Iterable[str]) -> str:
    """Return the blocks of a lock file for what the requirements need, for ``pip install --require-hashes``.

    The environment that runs this must have the locked packages (`make dev`).

    Raises:
        KeyError: a package is not in the lock file; run ``make lock``.
    """
    blocks: dict[str, str] = {}
    with_extras: dict[str, str] = {}
    for block in _BLOCK.finditer(lock):  # a package has several if its version depends on the Python
        name = canonicalize_name(block["name"])
        blocks[name] = f"{blocks.get(name, '')}{block[0]}\n"
        if block["extras"]:
            with_extras[name] = f"{name}{block['extras']}"
    # pip installs the extras of a line, too, and requires their packages. Another part of the lock file may need them.
    needed = [*requirements]
    while missing := [with_extras.pop(name) for name in _names(needed) if name in with_extras]:
        needed += missing
    return "".join(blocks[name] for name in _names(needed))


def _names(requirements: Iterable[str]) -> list[str]:
    return [canonicalize_name(found.metadata["Name"]) for found in closure(requirements, without=("ingestd",))]
