"""Extracts of a lock file: the locked versions, with hashes, of all packages that given requirements need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_BLOCK = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[.*\])?==.*(?:\n[ \t]+.*)*", re.MULTILINE)


def closure(requirements: Iterable[str], *, without: Iterable[str] = ()) -> list[Distribution]:
    """Return the installed distributions that the requirements need directly or indirectly, except the names in ``without``."""
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
    """Return the blocks of a lock file that ``pip install --require-hashes`` needs for the requirements.

    The Python environment of the caller must have the locked packages (`make dev`).

    Raises:
        KeyError: a package is not in the lock file; run ``make lock``.
    """
    blocks: dict[str, str] = {}
    with_extras: dict[str, str] = {}
    for block in _BLOCK.finditer(lock):  # a package has several blocks if its version depends on the version of Python
        name = canonicalize_name(block["name"])
        blocks[name] = f"{blocks.get(name, '')}{block[0]}\n"
        if block["extras"]:
            with_extras[name] = f"{name}{block['extras']}"
    # If a block has extras, pip also needs the packages of these extras, even if ``requirements`` don't need the extras.
    needed = [*requirements]
    while missing := [with_extras.pop(name) for name in _names(needed) if name in with_extras]:
        needed += missing
    return "".join(blocks[name] for name in _names(needed))


def _names(requirements: Iterable[str]) -> list[str]:
    return [canonicalize_name(found.metadata["Name"]) for found in closure(requirements, without=("ingestd",))]
