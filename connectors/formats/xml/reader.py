"""The XML reader: elements as records, one at a time.

It rejects entities, which can make a small file endless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.xml.record import XmlRecord, flatten_element, local_name
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation, row_positions

ROWS = 10_000
CELLS = 4_000_000
_MAX_DEPTH = 200

RecordOf: TypeAlias = Callable[[Sequence[Element], Element], XmlRecord | None]
"""Returns the record of an element, if it is one."""


def read_xml(file: BinaryIO, name: str, *, path: Sequence[str], lists: Sequence[str] = ()) -> Iterator[RecordChunk]:
    """Yield the elements at ``path`` as records, at least one chunk. Positions are their numbers from 1.

    ``path``: names of elements below the root, ``*`` for any; empty: the root's children. Namespaces are ignored.
    ``lists``: paths from a record to the elements that become lists of objects.

    Raises:
        SourceBroken: the file is not well-formed (after the records before that), declares entities, or has a too large element.
    """
    names = frozenset(one.replace("/", ".") for one in lists)
    wanted = tuple(path) or ("*",)

    def record(above: Sequence[Element], element: Element) -> XmlRecord | None:
        if len(above) != len(wanted) or not _fits(above[1:], element, wanted):
            return None
        return flatten_element(element, names)

    yield from read_elements(
        file,
        name,
        record,
        is_kept=lambda above, _: len(above) > len(wanted),
        advice=" Set records to the path of the elements that are records.",
    )


def read_elements(
    file: BinaryIO,
    name: str,
    record: RecordOf,
    *,
    is_kept: Callable[[Sequence[Element], Element], bool],
    discarded_restarts: bool = False,
    advice: str = "",
    rows: int = ROWS,
    record_bytes: int = RECORD_BYTES,
) -> Iterator[RecordChunk]:
    """Yield what ``record`` returns for elements, at least one chunk, in bounded memory.

    ``record`` gets the elements around an element that ended, from the root on, and the element; it returns None if that is no
    record. It gets the root when it begins, too, without content. ``is_kept``: whether an element that ended belongs to one
    that is still needed; others are emptied. At most ``record_bytes`` are read between two records or, with
    ``discarded_restarts``, between two elements that are not kept; ``advice`` says what to do if there are more.

    Raises:
        SourceBroken: the file is not well-formed (after the records before that), declares entities, or has a too large element.
    """
    bounded = _BoundedXml(file, name, record_bytes, advice)
    buffered: list[XmlRecord] = []
    row = 0
    try:
        for one in _records(bounded, name, record, is_kept, discarded_restarts=discarded_restarts):
            buffered.append(one)
            bounded.restart()
            if _is_full(buffered, rows):
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


def make_chunks(records: Iterable[XmlRecord], row: int, *, rows: int = ROWS) -> Iterator[RecordChunk]:
    """Yield records as chunks, at least one; ``row``: the number of the record before them."""
    buffered: list[XmlRecord] = []
    for one in records:
        buffered.append(one)
        if _is_full(buffered, rows):
            row += len(buffered)
            yield _chunk(buffered, row)
            buffered = []
    yield _chunk(buffered, row + len(buffered))


def _is_full(records: Sequence[XmlRecord], rows: int) -> bool:
    return len(records) >= rows or len(records) * len(records[-1]) > CELLS


def _records(
    file: _BoundedXml,
    name: str,
    record: RecordOf,
    is_kept: Callable[[Sequence[Element], Element], bool],
    *,
    discarded_restarts: bool,
) -> Iterator[XmlRecord]:
    open_elements: list[Element] = []
    for event, element in iterparse(file, events=("start", "end")):
        if event == "start":
            if not open_elements:
                record((), element)
            open_elements.append(element)
            if len(open_elements) > _MAX_DEPTH:
                raise SourceBroken(f"{name} has elements nested more than {_MAX_DEPTH} deep.")
            continue
        open_elements.pop()
        if open_elements and (found := record(open_elements, element)) is not None:
            yield found
        if not is_kept(open_elements, element):
            element.clear()
            if open_elements:
                open_elements[-1].remove(element)
            if discarded_restarts:
                file.restart()


def _fits(above: Sequence[Element], element: Element, path: Sequence[str]) -> bool:
    tags = [*(local_name(parent.tag) for parent in above), local_name(element.tag)]
    return all(wanted in {"*", tag} for wanted, tag in zip(path, tags, strict=True))


@dataclass(slots=True)
class _BoundedXml:
    """A file with a limit for the bytes that are read without finding a record."""

    file: BinaryIO
    name: str
    most: int
    advice: str
    count: int = 0

    def restart(self) -> None:
        """Restart the count, because a record was found, or nothing of what was read is held."""
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.count += len(data)
        if self.count > self.most + len(data):
            raise SourceBroken(f"{self.name}: {self.most} bytes were read without a record.{self.advice}")
        return data


def _chunk(records: Sequence[XmlRecord], row: int) -> RecordChunk:
    """Return the chunk of records; the last one has the number ``row``. An element without content has the empty text."""
    records = [record or {"text": ""} for record in records]
    return RecordChunk(
        records=records_to_frame(records, field_names(records)),
        positions=row_positions(range(row - len(records) + 1, row + 1)),
        end=RecordLocation(row=row),
    )
