"""The reader of ReqIF: requirements or relations as records, one at a time.

The format: OMG, Requirements Interchange Format (ReqIF) 1.2, clauses 10 and 11. Names of elements are compared without
namespace, because tools use different prefixes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO
from xml.etree.ElementTree import Element

from connectors.formats.column_names import UniqueNames
from connectors.formats.reqif.rich_text import plain_text
from connectors.formats.xml.reader import ROWS, read_elements
from connectors.formats.xml.record import XmlRecord, local_name
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import RecordChunk
from ingestd.sdk.formats.record_chunk import RECORD_BYTES

_ROOT = "REQ-IF"
_RECORDS = frozenset({"SPEC-OBJECT", "SPEC-RELATION"})
_ATTRIBUTES = ("IDENTIFIER", "LONG-NAME", "LAST-CHANGE", "DESC")
_DEFINITION = "ATTRIBUTE-DEFINITION-"
_VALUE = "ATTRIBUTE-VALUE-"
_ENDS = {"SOURCE": "source", "TARGET": "target"}


def read_reqif(
    file: BinaryIO, name: str, *, element: str, rows: int = ROWS, record_bytes: int = RECORD_BYTES
) -> Iterator[RecordChunk]:
    """Yield the elements called ``element`` as records, at least one chunk. Positions are their numbers from 1.

    Fields: ``@IDENTIFIER``, ``@LONG-NAME``, ``@LAST-CHANGE`` and ``@DESC`` as far as present, ``@type``, a field for each
    attribute by the name of its definition, and for a relation ``source`` and ``target``, the identifiers of two requirements.
    Formatted text becomes plain text. Several values of an enumeration are a sorted JSON list.

    Raises:
        SourceBroken: the file is no well-formed XML, declares entities, is no ReqIF, or defines its types behind their use.
    """
    names = _DefinitionNames(name)

    def record(above: Sequence[Element], one: Element) -> XmlRecord | None:
        tag = local_name(one.tag)
        if not above:
            if tag != _ROOT:
                raise SourceBroken(f"{name} is no ReqIF: its first element is {tag}, not {_ROOT}.")
            return None
        names.add(tag, above, one)
        return names.record(one) if tag == element else None

    yield from read_elements(
        file, name, record, is_kept=_is_kept, discarded_restarts=True, rows=rows, record_bytes=record_bytes
    )


def _is_kept(above: Sequence[Element], element: Element) -> bool:
    """Return whether an element that ended is a part of a requirement or a relation."""
    del element  # a whole requirement is not needed any more
    return any(local_name(one.tag) in _RECORDS for one in above)


class _DefinitionNames:
    """The names of types, attributes and values, by the identifiers of their definitions."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._types: dict[str, str] = {}
        self._attributes: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def add(self, tag: str, above: Sequence[Element], element: Element) -> None:
        """Note what an element defines, if it is a definition."""
        identifier = element.get("IDENTIFIER")
        if identifier is None:
            return
        name = element.get("LONG-NAME") or identifier
        if tag == "ENUM-VALUE":
            self._values[identifier] = name
        elif tag.startswith(_DEFINITION):
            self._attributes[identifier] = name
        elif tag.endswith("-TYPE") and any(local_name(one.tag) == "SPEC-TYPES" for one in above):
            self._types[identifier] = name

    def record(self, element: Element) -> XmlRecord:
        """Return the record of a requirement or a relation."""
        fields: XmlRecord = {f"@{name}": value for name in _ATTRIBUTES if (value := element.get(name)) is not None}
        for child in element:
            tag = local_name(child.tag)
            if tag == "TYPE":
                fields["@type"] = self._named(self._types, _reference(child))
            elif tag in _ENDS:
                fields[_ENDS[tag]] = _reference(child)
            elif tag == "VALUES":
                taken = UniqueNames(fields)
                values = dict(self._value(value, taken) for value in child)
                fields |= dict(sorted(values.items()))
        return fields

    def _value(self, element: Element, taken: UniqueNames) -> tuple[str, str]:
        children = {local_name(child.tag): child for child in element}
        definition = children.get("DEFINITION")
        name = self._named(self._attributes, _reference(definition) if definition is not None else "")
        kind = local_name(element.tag).removeprefix(_VALUE)
        if kind == "ENUMERATION":
            chosen = [self._named(self._values, (one.text or "").strip()) for one in children.get("VALUES", ())]
            text = chosen[0] if len(chosen) == 1 else json.dumps(sorted(chosen), ensure_ascii=False) if chosen else ""
        elif kind == "XHTML":
            text = plain_text(children["THE-VALUE"]) if "THE-VALUE" in children else ""
        else:
            text = element.get("THE-VALUE", "")
        return taken.add(name), text

    def _named(self, names: dict[str, str], identifier: str) -> str:
        if not self._types:
            raise SourceBroken(
                f"{self._file} defines its types (SPEC-TYPES) behind their use, so attributes have no names. Export it again"
                " with SPEC-TYPES before SPEC-OBJECTS."
            )
        return names.get(identifier, identifier)


def _reference(element: Element) -> str:
    """Return the identifier that the only child refers to."""
    return next(((child.text or "").strip() for child in element), "")
