"""The reader of nested records in XML: elements of one name at any depth, also inside other records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO
from xml.etree.ElementTree import Element

from connectors.formats.members import MemberNames
from connectors.formats.name_limit import NamesTooLong
from connectors.formats.nested import ANYWHERE, NestedItem, nested_records
from connectors.formats.record_chunks import make_chunks
from connectors.formats.xml.reader import find_elements
from connectors.formats.xml.record import flatten_element, local_name, shorten_element
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk


def read_nested(
    file: BinaryIO, name: str, *, element: str, item_id: str = "", lists: Sequence[str] = ()
) -> Iterator[RecordChunk]:
    """Yield the elements called ``element`` as records, at least one chunk. See `connectors.formats.nested`.

    Positions are the numbers of elements from 1, in the order in which they begin. The root may be a record. A record has
    the fields of `read_xml`, without the fields of the records in it. ``element`` is ``*`` for all elements with the field
    ``item_id``. In this case memory holds the whole document, otherwise one outermost record at a time.

    Raises:
        SourceBroken: see `read_xml` and `nested_records`; or the root has elements, but no record is found.
    """
    names = frozenset(one.replace("/", ".") for one in lists)
    there = MemberNames()
    matched = False

    def is_item(one: Element) -> bool:
        return _has(one, item_id) if element == "*" else local_name(one.tag) == element

    def trees_at(above: Sequence[Element], one: Element) -> Sequence[NestedItem] | None:
        nonlocal matched
        if above and not matched:
            there.add(local_name(one.tag))
        if above and (element == "*" or not is_item(one) or any(map(is_item, above))):
            return None
        found = [one] if is_item(one) else _take_items(one, is_item)
        matched = matched or bool(found)
        return [_item(item, is_item, names) for item in found] or None

    def is_kept(above: Sequence[Element], _: Element) -> bool:
        return element == "*" or any(map(is_item, above))

    found = find_elements(
        file,
        name,
        trees_at,
        is_kept=is_kept,
        advice=f" With {ANYWHERE} (records), this is the limit for an outermost record.",
    )
    yield from make_chunks(nested_records((tree for trees in found for tree in trees), name, item_id))
    if there and not matched:
        what = f"with {item_id!r} (id)" if element == "*" else f"{element!r} (records)"
        raise SourceBroken(f"{name} has no element {what} at any depth.{there.sentence(element)}")


def _has(element: Element, field: str) -> bool:
    """Return whether a record of the element would have the field, without reading its text."""
    if any(field == f"@{local_name(name)}" for name in element.attrib):
        return True
    for child in element:
        tag = local_name(child.tag)
        if field == tag or (field.startswith(f"{tag}.") and _has(child, field[len(tag) + 1 :])):
            return True
    return False


def _item(element: Element, is_item: Callable[[Element], bool], lists: frozenset[str]) -> NestedItem:
    items = [_item(one, is_item, lists) for one in _take_items(element, is_item)]
    try:
        return NestedItem(fields=flatten_element(element, lists) or {"text": ""}, items=items)
    except NamesTooLong as error:
        return NestedItem(fields=shorten_element(element), items=items, fault=str(error))


def _take_items(element: Element, is_item: Callable[[Element], bool]) -> list[Element]:
    """Remove the outermost records from an element, and elements that held only records. Return the records."""
    taken: list[Element] = []
    kept: list[Element] = []
    texts = [element.text or "", *(child.tail or "" for child in element)]
    for child in element:
        is_record = is_item(child)
        inside = [child] if is_record else _take_items(child, is_item)
        taken += inside
        if not is_record and (not inside or len(child) or child.attrib or child.text):
            kept.append(child)
    if len(kept) < len(element):
        element[:] = kept
        element.text = "".join(texts).strip()
        for child in kept:
            child.tail = None
    return taken
