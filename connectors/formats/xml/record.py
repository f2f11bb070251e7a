"""The flat record of an element: attributes as @name, children by name, nested names joined by dots.

This module performs no I/O.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

import msgspec

XmlRecord = dict[str, str | None]


def flatten_element(element: Element) -> XmlRecord:
    """Return the record of an element; names are without namespaces.

    Text is exact; if the element has children, it is without the white space around it. Children with equal names become a JSON
    list of their texts. An element without text or children becomes the empty text.
    """
    found: dict[str, list[str]] = {}
    _fill(found, element, "")
    return {name: texts[0] if len(texts) == 1 else msgspec.json.encode(texts).decode() for name, texts in found.items()}


def local_name(tag: str) -> str:
    """Return a name without its namespace."""
    return tag.rpartition("}")[2]


def _fill(found: dict[str, list[str]], element: Element, prefix: str) -> None:
    for name, value in element.attrib.items():
        found.setdefault(f"{prefix}@{local_name(name)}", []).append(value)
    children = list(element)
    text = element.text or ""
    if children:
        text = "".join([text, *(child.tail or "" for child in children)]).strip()
    if prefix and (text or not children):
        found.setdefault(prefix.removesuffix("."), []).append(text)
    elif not prefix and text.strip():
        found.setdefault("text", []).append(text if not children else text.strip())
    for child in children:
        _fill(found, child, f"{prefix}{local_name(child.tag)}.")
