"""The reader of ReqIF: requirements or relations as records, one at a time.

The format: OMG, Requirements Interchange Format (ReqIF) 1.2, clauses 10 and 11. Names of elements are compared without
namespace, because tools use different prefixes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast
from xml.etree.ElementTree import Element, tostring

from defusedxml.ElementTree import fromstring
from msgspec.structs import replace

from connectors.formats.column_names import UniqueNames, numbered_names
from connectors.formats.record_chunks import ROWS, FieldTexts, make_chunks
from connectors.formats.reqif.rich_text import plain_text
from connectors.formats.xml.reader import find_elements
from connectors.formats.xml.record import local_name
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import RecordChunk
from ingestd.sdk.formats.record_chunk import RECORD_BYTES

_ROOT = "REQ-IF"
_RECORDS = frozenset({"SPEC-OBJECT", "SPEC-RELATION"})
_ATTRIBUTES = ("IDENTIFIER", "LONG-NAME", "LAST-CHANGE", "DESC")
_DEFINITION = "ATTRIBUTE-DEFINITION-"
_VALUE = "ATTRIBUTE-VALUE-"
_ENDS = {"SOURCE": "source", "TARGET": "target"}
DEFERRED_BYTES = 256 * 2**20
"""The limit for the bytes of elements that are stored until their names are defined."""


def read_reqif(
    file: BinaryIO,
    name: str,
    *,
    element: str,
    rows: int = ROWS,
    record_bytes: int = RECORD_BYTES,
    deferred_bytes: int = DEFERRED_BYTES,
) -> Iterator[RecordChunk]:
    """Yield the elements called ``element`` as records, at least one chunk. A position is the number of a record, from 1.

    Fields: ``@IDENTIFIER``, ``@LONG-NAME``, ``@LAST-CHANGE`` and ``@DESC`` if present, ``@type``, and each attribute under
    the name of its definition. A relation also has ``source`` and ``target``, the identifiers of two requirements.
    Formatted text becomes plain text. Several values of an enumeration become a sorted JSON list.

    If definitions are missing or come after their use, the elements are stored in a temporary file and read at the end.

    Raises:
        SourceBroken: the file is no well-formed XML, declares entities, is no ReqIF, or has more than ``deferred_bytes`` of
            elements before their definitions.
    """
    names = _DefinitionNames()
    with tempfile.SpooledTemporaryFile(max_size=record_bytes) as deferred:

        def check_root(root: Element) -> None:
            if (tag := local_name(root.tag)) != _ROOT:
                raise SourceBroken(f"{name} is no ReqIF: its first element is {tag}, not {_ROOT}.")

        def record(above: Sequence[Element], one: Element) -> FieldTexts | None:
            tag = local_name(one.tag)
            names.add(tag, above, one)
            if tag != element:
                return None
            if not deferred.tell():
                with suppress(
                    _NotDefined
                ):  # then this element and all later elements are stored, so that they stay in order
                    return names.record(one)
            text = tostring(one)
            deferred.write(len(text).to_bytes(8, "big") + text)
            if deferred.tell() > deferred_bytes:
                raise SourceBroken(
                    f"{name} defines its types (SPEC-TYPES, DATATYPES) after more than {deferred_bytes} bytes of their use, or"
                    " not at all. Export it again with its definitions before SPEC-OBJECTS."
                )
            return None

        read = 0
        found = find_elements(
            file,
            name,
            record,
            is_kept=_is_kept,
            check_root=check_root,
            discarded_restarts=True,
            record_bytes=record_bytes,
        )
        for chunk in make_chunks(found, rows=rows):
            read = chunk.end.row
            yield chunk
        if deferred.tell():
            deferred.seek(0)
            names.are_final = True
            records = map(names.record, _stored(cast("BinaryIO", deferred)))
            yield from _with_notice(make_chunks(records, read, rows=rows), names.missing)


def _stored(file: BinaryIO) -> Iterator[Element]:
    """Yield the elements of a file that `read_reqif` wrote."""
    while size := file.read(8):
        yield fromstring(file.read(int.from_bytes(size, "big")))


def _with_notice(chunks: Iterator[RecordChunk], missing: Collection[str]) -> Iterator[RecordChunk]:
    """Yield the chunks. The notice of each chunk lists the kinds of undefined names that were found so far."""
    for chunk in chunks:
        facts: Mapping[str, str] = {}
        if missing:
            facts = {
                "file.notice": f"It does not define {' and '.join(sorted(missing))}, so their identifiers are used as names."
            }
        yield replace(chunk, facts=facts)


def _is_kept(above: Sequence[Element], element: Element) -> bool:
    """Return whether an element that ended is a part of a requirement or a relation."""
    del element  # a requirement that ended is already a record
    return any(local_name(one.tag) in _RECORDS for one in above)


class _NotDefined(Exception):
    """An element uses a kind of names (types, attributes, values), and no name of this kind was defined so far."""


class _DefinitionNames:
    """The names of types, attributes and values, by the identifiers of their definitions.

    ``are_final``: all definitions were read, so an identifier without a definition is used as the name. ``missing``: the
    kinds of names without a definition.
    """

    def __init__(self) -> None:
        self.are_final = False
        self.missing: set[str] = set()
        self._types: dict[str, str] = {}
        self._attributes: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._of_type: list[tuple[str, str]] = []
        """Identifiers and names of the attributes of the type that is being read."""

    def add(self, tag: str, above: Sequence[Element], element: Element) -> None:
        """Record the names that an element defines, if it is a definition."""
        identifier = element.get("IDENTIFIER")
        if identifier is None:
            return
        name = element.get("LONG-NAME") or identifier
        if tag == "ENUM-VALUE":
            self._values[identifier] = name
        elif tag.startswith(_DEFINITION):
            self._of_type.append((identifier, name))
        elif tag.endswith("-TYPE") and any(local_name(one.tag) == "SPEC-TYPES" for one in above):
            self._types[identifier] = name
            self._name_attributes()

    def _name_attributes(self) -> None:
        """Name the attributes of one type. Equal names, except the first, get a number in the order of identifiers."""
        by_identifier = sorted(self._of_type)
        names = numbered_names([name for _, name in by_identifier])
        self._attributes |= {identifier: name for (identifier, _), name in zip(by_identifier, names, strict=True)}
        self._of_type.clear()

    def record(self, element: Element) -> FieldTexts:
        """Return the record of a requirement or a relation.

        Raises:
            _NotDefined: the element uses a kind of names, and no name of this kind was defined so far.
        """
        fields: FieldTexts = {f"@{name}": value for name in _ATTRIBUTES if (value := element.get(name)) is not None}
        for child in element:
            tag = local_name(child.tag)
            if tag == "TYPE":
                fields["@type"] = self._named(self._types, _reference(child), "types (SPEC-TYPES)")
            elif tag in _ENDS:
                fields[_ENDS[tag]] = _reference(child)
        values: FieldTexts = {}
        taken = UniqueNames(fields)
        for child in element:
            for one in child if local_name(child.tag) == "VALUES" else ():
                name, text = self._value(one)
                values[taken.add(name)] = text
        return fields | dict(sorted(values.items()))

    def _value(self, element: Element) -> tuple[str, str]:
        children = {local_name(child.tag): child for child in element}
        definition = children.get("DEFINITION")
        reference = _reference(definition) if definition is not None else ""
        name = self._named(self._attributes, reference, "attributes (SPEC-TYPES)")
        kind = local_name(element.tag).removeprefix(_VALUE)
        if kind == "ENUMERATION":
            chosen = [
                self._named(self._values, (one.text or "").strip(), "values of enumerations (DATATYPES)")
                for one in children.get("VALUES", ())
            ]
            text = chosen[0] if len(chosen) == 1 else json.dumps(sorted(chosen), ensure_ascii=False) if chosen else ""
        elif kind == "XHTML":
            text = plain_text(children["THE-VALUE"]) if "THE-VALUE" in children else ""
        else:
            text = element.get("THE-VALUE", "")
        return name, text

    def _named(self, names: dict[str, str], identifier: str, kind: str) -> str:
        if not names:
            if not self.are_final:
                raise _NotDefined
            self.missing.add(kind)
        return names.get(identifier, identifier)


def _reference(element: Element) -> str:
    """Return the identifier in the only child of an element."""
    return next(((child.text or "").strip() for child in element), "")
