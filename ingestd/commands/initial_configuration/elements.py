"""The elements of an XML document that repeat, and may be its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

_ELEMENTS = 100_000


def repeated_elements(path: Path) -> Mapping[str, int]:
    """Return the paths below the root of the elements that repeat nearest to it, with their numbers.

    Only the first elements of a large document are counted. A document that can't be parsed has none; its reading reports that.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    above: list[str] = []
    try:
        for event, element in iterparse(path, events=("start", "end")):
            if event == "start":
                above.append(_name(element))
                counts[tuple(above[1:])] += 1
            else:
                above.pop()
                element.clear()
            if counts.total() >= _ELEMENTS:
                break
    except (ParseError, DefusedXmlException, OSError):
        return {}
    repeated = {elements: count for elements, count in counts.items() if elements and count > 1}
    nearest = min(map(len, repeated), default=0)
    return {"/".join(elements): count for elements, count in repeated.items() if len(elements) == nearest}


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
