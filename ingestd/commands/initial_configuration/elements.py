"""Repeated and nested elements of an XML document, and nested objects of a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import msgspec
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

_ELEMENTS = 100_000
_END = object()


class RepeatedElements(msgspec.Struct, frozen=True, kw_only=True):
    """The repeated elements of an XML document. ``paths``: by path below the root, the number of elements at this path.

    ``nested``: names of elements that contain an element of the same name.
    """

    paths: Mapping[str, int]
    nested: frozenset[str] = frozenset()


def repeated_elements(path: Path) -> RepeatedElements:
    """Return the repeated elements that are nearest to the root, and the nested elements.

    Only the first elements of a large document are counted. For a document that can't be parsed, return no elements: the
    later reading of the document reports the error.
    """
    # Every path has a number. The key is the number of the parent path, and the last name of the path.
    nodes: dict[tuple[int, str], int] = {}
    depths, counts, open_paths = [0], Counter[int](), [0]
    around, nested = Counter[str](), set[str]()
    try:
        for event, element in islice(iterparse(path, events=("start", "end")), 2 * _ELEMENTS):
            name = str(element.tag).rpartition("}")[2]
            if event == "end":
                around[name] -= 1
                open_paths.pop()
                element.clear()
                continue
            if around[name]:
                nested.add(name)
            around[name] += 1
            node = nodes.setdefault((open_paths[-1], name), len(depths))
            if node == len(depths):
                depths.append(len(open_paths))
            open_paths.append(node)
            counts[node] += 1
    except (ParseError, DefusedXmlException, ValueError, LookupError, OSError):  # for example, an unknown encoding
        return RepeatedElements(paths={})
    repeated = [node for node, count in counts.items() if count > 1]
    nearest = min((depths[node] for node in repeated), default=0)
    keys = dict(zip(nodes.values(), nodes, strict=True))
    paths = {_path(node, keys): counts[node] for node in repeated if depths[node] == nearest}
    return RepeatedElements(paths=paths, nested=frozenset(nested))


def _path(node: int, keys: Mapping[int, tuple[int, str]]) -> str:
    """Return the names of a path below the root."""
    names = []
    while node:
        node, name = keys[node]
        names.append(name)
    return "/".join(reversed(names[:-1]))


def nested_identifiers(document: object) -> list[str]:
    """Return the names of members that have a text or number in every nested object; empty if no objects are nested.

    Objects are nested if a list inside an object has the same name as a list that contains the object.
    """
    objects, nested, around = dict[str, list[dict[str, Any]]](), set[str](), Counter[str | None]()
    open_values: list[tuple[str | None, Iterator[tuple[str | None, object]]]] = [(None, _members(document))]
    while open_values:
        name, member = next(open_values[-1][1], (None, _END))
        if member is _END:
            around[open_values.pop()[0]] -= 1
            continue
        items = [item for item in member if isinstance(item, dict)] if isinstance(member, list) else []
        listed = name if items else None
        if listed is not None:
            if around[listed]:
                nested.add(listed)
            objects.setdefault(listed, []).extend(items)
        around[listed] += 1
        open_values.append((listed, _members(member)))
    found = [item for name, items in objects.items() if name in nested for item in items]
    return [
        name
        for name in (found[0] if found else ())
        if all(isinstance(item.get(name), str | int | float) for item in found)
    ]


def _members(value: object) -> Iterator[tuple[str | None, object]]:
    """Yield the members of an object with their names, or the items of a list."""
    if isinstance(value, list):
        return ((None, item) for item in value)
    return iter(value.items() if isinstance(value, dict) else ())
