"""The flat record of an element: attributes as @name, children by name, nested names joined by dots.

This module performs no I/O.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

import msgspec

from connectors.formats.name_limit import NameLimit
from connectors.formats.record_chunks import FieldTexts
from connectors.formats.text.lines import shown_text


def flatten_element(element: Element, lists: frozenset[str] = frozenset()) -> FieldTexts:
    """Return the record of an element; names are without namespaces.

    Text is exact; if the element has children, the white space around the text is removed. Children with equal names become a
    JSON list of their texts. An element without text or children becomes the empty text. ``lists``: the joined names of
    children that become a JSON list of objects, even if there is only one child.

    Raises:
        NamesTooLong: the joined names are too long.
    """
    limit = NameLimit(lambda: len(tostring(element, encoding="unicode")))
    return {
        name: value if isinstance(value, str) else bytes(value).decode()
        for name, value in _flatten(element, lists, "", limit).items()
    }


def shorten_element(element: Element) -> FieldTexts:
    """Return the text that is kept of a rejected element: the beginning of its XML."""
    return {"text": shown_text(tostring(element, encoding="unicode"))}


def local_name(tag: str) -> str:
    """Return a name without its namespace."""
    return tag.rpartition("}")[2]


def _flatten(element: Element, lists: frozenset[str], path: str, limit: NameLimit) -> dict[str, str | msgspec.Raw]:
    """Return the fields of an element. ``path``: the joined name of the list that holds the element, with a dot at its end."""
    texts: dict[str, list[str]] = {}
    objects: dict[str, list[dict[str, str | msgspec.Raw]]] = {}

    def fill(part: Element, prefix: str) -> None:
        children = list(part)
        if prefix and (children or part.attrib):
            limit.add(len(prefix) * (len(part.attrib) + len(children)))
        for name, value in part.attrib.items():
            texts.setdefault(f"{prefix}@{local_name(name)}", []).append(value)
        text = part.text or ""
        if children:
            text = "".join([text, *(child.tail or "" for child in children)]).strip()
        if prefix and (text or not children):
            texts.setdefault(prefix.removesuffix("."), []).append(text)
        elif not prefix and text.strip():
            texts.setdefault("text", []).append(text if not children else text.strip())
        for child in children:
            name = f"{prefix}{local_name(child.tag)}"
            if f"{path}{name}" in lists:
                objects.setdefault(name, []).append(_flatten(child, lists, f"{path}{name}.", limit))
            else:
                fill(child, f"{name}.")

    fill(element, "")
    fields: dict[str, str | msgspec.Raw] = {
        name: found[0] if len(found) == 1 else msgspec.Raw(msgspec.json.encode(found)) for name, found in texts.items()
    }
    return fields | {name: msgspec.Raw(msgspec.json.encode(found)) for name, found in objects.items()}
