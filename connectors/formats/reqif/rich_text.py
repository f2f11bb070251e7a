"""Formatted text (XHTML) as plain text. Performs no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from connectors.formats.xml.record import local_name

_LINES = frozenset(
    [
        "address",
        "blockquote",
        "br",
        "caption",
        "dd",
        "div",
        "dl",
        "dt",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
    ]
)
"""Elements that begin and end a line."""
_CELLS = frozenset({"td", "th"})
_SPACE = re.compile(r"[ \t\r\n\f]+")
_AROUND_LINES = re.compile(r"(?<! ) *+\n[ \n]*")
_AROUND_CELLS = re.compile(r"(?<! ) *+\t *")


def plain_text(element: Element) -> str:
    """Return the text of an element: paragraphs, rows and items on separate lines, cells of a row separated by tabs.

    White space is reduced to single spaces, as a browser shows it, except in ``pre``. An embedded object has its alternative
    text.
    """
    text = "".join(_parts(element, exact=False))
    lines = (_AROUND_CELLS.sub("\t", line).strip(" \t") for line in _AROUND_LINES.sub("\n", text).split("\n"))
    return "\n".join(line for line in lines if line).replace("\0", " ").replace("\1", "\n")


def _parts(element: Element, *, exact: bool) -> Iterator[str]:
    tag = local_name(element.tag).lower()
    exact = exact or tag == "pre"
    edge = "\n" if tag in _LINES else ""
    yield edge
    yield _shown(element.text, exact=exact)
    is_first = True
    for child in element:
        if local_name(child.tag).lower() in _CELLS:
            yield "" if is_first else "\t"
            is_first = False
        yield from _parts(child, exact=exact)
        yield _shown(child.tail, exact=exact)
    yield edge


def _shown(text: str | None, *, exact: bool) -> str:
    if not text:
        return ""
    return text.replace(" ", "\0").replace("\n", "\1") if exact else _SPACE.sub(" ", text)
