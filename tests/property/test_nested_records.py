"""Nested records of XML and JSON are those of a simple walk through the tree, whatever is between them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from hypothesis import given
from hypothesis import strategies as st

from connectors.formats.json import Json
from connectors.formats.xml import Xml
from ingestd.sdk.formats import Format
from tests.support.format_records import located, rejects

Row = tuple[int, dict[str, str] | None]


@dataclass
class Part:
    """A part of a bill of materials. ``wraps``: how many elements are between it and its parts."""

    number: str | None
    fields: dict[str, str]
    parts: list[Part] = field(default_factory=list)
    wraps: int = 0


FIELDS = st.dictionaries(st.sampled_from(["mass", "name", "unit"]), st.sampled_from(["1", "0.10", "x y"]), min_size=1)
NUMBERS = st.sampled_from(["A", "B", "1.5", None])
PARTS = st.recursive(
    st.builds(Part, number=NUMBERS, fields=FIELDS),
    lambda inside: st.builds(
        Part, number=NUMBERS, fields=FIELDS, parts=st.lists(inside, max_size=3), wraps=st.integers(0, 2)
    ),
    max_leaves=12,
)


def walk(parts: list[Part], number_of: str, *, with_id: bool) -> list[Row]:
    """Return the number and the fields of each part; None for one that is rejected."""
    rows: list[Row] = []

    def visit(part: Part, above: list[Part], *, usable: bool) -> None:
        usable = usable and (part.number is not None or not with_id)
        chain = [*above, part]
        fields: dict[str, str] = {}
        for distance, one in enumerate(reversed(chain)):
            prefix = "parent." * distance
            own = one.fields | ({number_of: one.number} if one.number is not None else {})
            fields |= {f"{prefix}{name}": value for name, value in own.items()}
        if with_id:
            fields["item.path"] = ".".join(str(one.number) for one in chain)
        rows.append((len(rows) + 1, fields if usable else None))
        for child in part.parts:
            visit(child, chain, usable=usable)

    for part in parts:
        visit(part, [], usable=True)
    return rows


def as_xml(parts: list[Part]) -> bytes:
    root = Element("Bom")

    def add(parent: Element, part: Part) -> None:
        element = SubElement(parent, "Item", {} if part.number is None else {"n": part.number})
        holder = element
        for at in range(part.wraps if part.parts else 0):
            holder = SubElement(holder, f"Parts{at}")
        for child in part.parts:
            add(holder, child)
        for name, value in part.fields.items():  # after the parts: a record is complete only at its end
            SubElement(element, name).text = value

    for part in parts:
        add(root, part)
    return tostring(root)


def as_json(parts: list[Part]) -> bytes:
    def made(part: Part) -> dict[str, Any]:
        inside: Any = [made(child) for child in part.parts]
        found: dict[str, Any] = {"n": part.number} if part.number is not None else {}
        if part.parts and part.wraps:
            inside = {"items": inside} if part.wraps == 1 else [{"items": inside}]
            return found | {"more": inside} | part.fields
        return found | {"items": inside} | part.fields

    return json.dumps({"version": {"x": [1]}, "items": [made(part) for part in parts]}).encode()


def check(file_format: Format, data: bytes, expected: list[Row]) -> None:
    chunks = list(file_format.read(io.BytesIO(data), "a"))
    found: Iterator[Row] = iter(
        [*((int(at), fields) for at, fields in located(chunks)), *((int(at), None) for at in rejects(chunks))]
    )
    assert sorted(found, key=lambda row: row[0]) == expected


@given(parts=st.lists(PARTS, max_size=3))
def test_nested_elements_are_the_records_of_a_walk(parts: list[Part]) -> None:
    check(Xml(records="**/Item"), as_xml(parts), walk(parts, "@n", with_id=False))
    check(Xml(records="**/Item", id="@n"), as_xml(parts), walk(parts, "@n", with_id=True))


@given(parts=st.lists(PARTS, max_size=3))
def test_nested_objects_are_the_records_of_a_walk(parts: list[Part]) -> None:
    check(Json(records="**/items"), as_json(parts), walk(parts, "n", with_id=False))
    check(Json(records="**/items", id="n"), as_json(parts), walk(parts, "n", with_id=True))
