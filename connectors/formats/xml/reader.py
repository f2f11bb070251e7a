"""The XML reader: elements as records, one at a time.

It rejects entities, which can make a small file endless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError

import polars as pl
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation
from connectors.formats.xml.record import XmlRecord, flatten_element, local_name
from ingestd.sdk import SourceBroken

ROWS = 10_000
CELLS = 4_000_000
_MAX_DEPTH = 200


def read_xml(
    file: BinaryIO,
    name: str,
    *,
    path: Sequence[str],
    lists: Sequence[str] = (),
    rows: int = ROWS,
    record_bytes: int = RECORD_BYTES,
) -> Iterator[RecordChunk]:
    """Yield the elements at ``path`` as records, at least one chunk. Positions are their numbers from 1.

    ``path``: names of elements below the root, ``*`` for any; empty: the root's children. Namespaces are ignored.
    ``lists``: paths from a record to the elements that become lists of objects.

    Raises:
        SourceBroken: the file is not well-formed (after the records before that), declares entities, or has a too large element.
    """
    bounded = _BoundedXml(file, name, record_bytes)
    names = frozenset(one.replace("/", ".") for one in lists)
    buffered: list[XmlRecord] = []
    row = 0
    try:
        for element in _elements(bounded, tuple(path) or ("*",), name):
            buffered.append(flatten_element(element, names))
            bounded.record_taken()
            if len(buffered) >= rows or len(buffered) * len(buffered[-1]) > CELLS:
                row += len(buffered)
                yield _chunk(buffered, row)
                buffered = []
    except DefusedXmlException as error:
        raise SourceBroken(f"{name} declares entities, which are not allowed. Write it without them.") from error
    except (ParseError, ValueError, LookupError) as error:  # for example, an unknown encoding
        if buffered:
            yield _chunk(buffered, row + len(buffered))
        count = row + len(buffered)
        read = f"The records before that ({count}) were read" if count else "No record was read"
        raise SourceBroken(f"{name} is not well-formed XML: {error}. {read}.") from error
    yield _chunk(buffered, row + len(buffered))


def _elements(file: _BoundedXml, path: tuple[str, ...], name: str) -> Iterator[Element]:
    """Yield the elements at the path; each is emptied after its record was taken."""
    open_elements: list[Element] = []
    for event, element in iterparse(file, events=("start", "end")):
        if event == "start":
            open_elements.append(element)
            if len(open_elements) > _MAX_DEPTH:
                raise SourceBroken(f"{name} has elements nested more than {_MAX_DEPTH} deep.")
            continue
        open_elements.pop()
        depth = len(open_elements)
        if depth == len(path) and _fits(open_elements[1:], element, path):
            yield element
        if depth <= len(path):
            element.clear()
            if open_elements:
                open_elements[-1].remove(element)


def _fits(above: Sequence[Element], element: Element, path: Sequence[str]) -> bool:
    tags = [*(local_name(parent.tag) for parent in above), local_name(element.tag)]
    return all(wanted in {"*", tag} for wanted, tag in zip(path, tags, strict=True))


class _BoundedXml:
    """A file with a limit for the bytes that are read without finding a record."""

    def __init__(self, file: BinaryIO, name: str, most: int) -> None:
        self._file = file
        self._name = name
        self._most = most
        self._since = 0

    def record_taken(self) -> None:
        """Restart the count, because a record was found."""
        self._since = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._since += len(data)
        if self._since > self._most + len(data):
            raise SourceBroken(
                f"{self._name}: {self._most} bytes were read without a record. Set records to the path of the elements that are"
                " records."
            )
        return data


def _chunk(records: Sequence[XmlRecord], row: int) -> RecordChunk:
    positions = pl.Series("position", range(row - len(records) + 1, row + 1), dtype=pl.Int64)
    return RecordChunk(
        records=records_to_frame(records, field_names(records)),
        positions=positions,
        rejects=(),
        end=RecordLocation(row=row),
    )
