"""The elements of an XML document and the objects of a JSON document that repeat, or contain each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import msgspec
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

_ELEMENTS = 100_000


class RepeatedElements(msgspec.Struct, frozen=True, kw_only=True):
    """``paths``: below the root, with the number of elements at each. ``nested``: names of elements that contain each other."""

    paths: Mapping[str, int]
    nested: frozenset[str] = frozenset()


def repeated_elements(path: Path) -> RepeatedElements:
    """Return the elements that repeat nearest to the root.

    Only the first elements of a large document are counted. A document that can't be parsed has none; its reading reports that.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    above: list[str] = []
    nested: set[str] = set()
    try:
        for event, element in iterparse(path, events=("start", "end")):
            if event == "start":
                name = _name(element)
                nested |= {name} & set(above)
                above.append(name)
                counts[tuple(above[1:])] += 1
            else:
                above.pop()
                element.clear()
            if counts.total() >= _ELEMENTS:
                break
    except (ParseError, DefusedXmlException, OSError):
        return RepeatedElements(paths={})
    repeated = {elements: count for elements, count in counts.items() if elements and count > 1}
    nearest = min(map(len, repeated), default=0)
    paths = {"/".join(elements): count for elements, count in repeated.items() if len(elements) == nearest}
    return RepeatedElements(paths=paths, nested=frozenset(nested))


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def nested_identifiers(document: object) -> list[str]:
    """Return the members with a text or number that all objects have which contain each other; empty if none do.

    An object contains another of its kind if a list in it has the name of the list that the object is in.
    """
    lists = list(_lists(document, ()))
    names = {name for name, above, _ in lists if name in above}
    objects = [item for name, _, items in lists if name in names for item in items]
    if not objects:
        return []
    return [name for name in objects[0] if all(isinstance(item.get(name), str | int | float) for item in objects)]


def _lists(value: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], list[dict[str, Any]]]]:
    """Yield the name of each list of objects, the names of the lists around it, and its objects."""
    if isinstance(value, list):
        for item in value:
            yield from _lists(item, above)
    elif isinstance(value, dict):
        for name, member in value.items():
            objects = [item for item in member if isinstance(item, dict)] if isinstance(member, list) else []
            if objects:
                yield name, above, objects
            yield from _lists(member, (*above, name) if objects else above)
