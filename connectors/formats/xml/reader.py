"""The XML reader: elements as records, one at a time.

It rejects entities, which can expand a small file without limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeVar
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from connectors.formats.members import MemberNames
from connectors.formats.name_limit import NamesTooLong
from connectors.formats.record_chunks import FieldTexts, Unusable, make_chunks
from connectors.formats.xml.record import flatten_element, local_name, shorten_element
from ingestd.sdk import SourceBroken, shortened
from ingestd.sdk.formats.record_chunk import RECORD_BYTES, RecordChunk

_MAX_DEPTH = 200

Found = TypeVar("Found")


def read_xml(file: BinaryIO, name: str, *, path: Sequence[str], lists: Sequence[str] = ()) -> Iterator[RecordChunk]:
    """Yield the elements at ``path`` as records, at least one chunk. A position is the number of an element, from 1.

    ``path``: names of elements below the root, ``*`` for any name (empty: the root's children). Namespaces are ignored.
    ``lists``: paths from a record to the elements that become lists of objects.

    Raises:
        SourceBroken: the file is not well-formed (raised after the records before the fault), declares entities, has a too
            large element, or has elements but none at the path.
    """
    names = frozenset(one.replace("/", ".") for one in lists)
    wanted = tuple(path) or ("*",)
    reached = _PathEnd(wanted)

    def record(above: Sequence[Element], element: Element) -> FieldTexts | Unusable | None:
        if len(above) > len(wanted):
            return None
        reached.note(above, element)
        if len(above) < len(wanted) or not _fits([*above[1:], element], wanted):
            return None
        try:
            return flatten_element(element, names)
        except NamesTooLong as error:
            return Unusable(
                reason=f"The element {shortened(local_name(element.tag))!r} {error}.", record=shorten_element(element)
            )

    yield from make_chunks(
        find_elements(
            file,
            name,
            record,
            is_kept=lambda above, _: len(above) > len(wanted),
            advice=" Set records to the path of the elements that are records.",
        )
    )
    reached.require_match(name)


class _PathEnd:
    """Finds the deepest element on a path. If the path's next element is missing, records the names of the children."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = path
        self._level = -1
        self._there = ""
        self._names = MemberNames()

    def note(self, above: Sequence[Element], element: Element) -> None:
        """Record an element that ended. ``above``: its ancestors, at most the number of names in the path."""
        level = len(above)
        if not self._level <= level or self._level == len(self._path) or not _fits(above[1:], self._path):
            return
        if level:
            self._reach(above)
        if not level or _fits([element], self._path[level - 1 :]):
            self._reach([*above, element])
        elif self._level == level - 1:
            self._names.add(local_name(element.tag))

    def _reach(self, elements: Sequence[Element]) -> None:
        if len(elements) - 1 > self._level:
            self._level = len(elements) - 1
            self._there = "/".join(local_name(one.tag) for one in elements)
            self._names = MemberNames()

    def require_match(self, name: str) -> None:
        """Check that the document has an element at the path, or that the parent of such elements is empty.

        Raises:
            SourceBroken: the document has other elements instead.
        """
        missing = self._path[self._level] if 0 <= self._level < len(self._path) else ""
        if missing and (self._names or self._level < len(self._path) - 1):
            raise SourceBroken(
                f"{name}: {self._there} has no element {missing!r} (records).{self._names.sentence(missing)}"
            )


def find_elements(
    file: BinaryIO,
    name: str,
    found: Callable[[Sequence[Element], Element], Found | None],
    *,
    is_kept: Callable[[Sequence[Element], Element], bool],
    check_root: Callable[[Element], None] = lambda _: None,
    discarded_restarts: bool = False,
    advice: str = "",
    record_bytes: int = RECORD_BYTES,
) -> Iterator[Found]:
    """Yield the results of ``found`` for the elements of a file, in bounded memory.

    ``found`` gets the ancestors of an element that ended, from the root on, and this element. It returns None if the
    element is no record. ``check_root`` gets the root when it begins. ``is_kept`` returns True if an element that ended is
    a part of a needed element; all other elements are emptied. At most ``record_bytes`` are read between two records or,
    with ``discarded_restarts``, between two elements that are not kept. ``advice``: the end of the error above this limit.

    Raises:
        SourceBroken: the file is not well-formed (raised after the records before the fault), declares entities, or has a too
            large element.
    """
    bounded = _BoundedXml(file, name, record_bytes, advice)
    count = 0
    try:
        for element, above in _ended_elements(bounded, name, check_root):
            if (one := found(above, element)) is not None:
                count += 1
                yield one
                bounded.restart()
            if not is_kept(above, element):
                element.clear()
                if above:
                    above[-1].remove(element)
                if discarded_restarts:
                    bounded.restart()
    except DefusedXmlException as error:
        raise SourceBroken(f"{name} declares entities, which are not allowed. Write it without them.") from error
    except (ParseError, ValueError, LookupError) as error:  # for example, an unknown encoding
        read = f"The records before that ({count}) were read" if count else "No record was read"
        raise SourceBroken(f"{name} is not well-formed XML: {error}. {read}.") from error


def _ended_elements(
    file: _BoundedXml, name: str, check_root: Callable[[Element], None]
) -> Iterator[tuple[Element, Sequence[Element]]]:
    """Yield each element that ended, with its ancestors."""
    open_elements: list[Element] = []
    for event, element in iterparse(file, events=("start", "end")):
        if event == "end":
            open_elements.pop()
            yield element, open_elements
            continue
        if not open_elements:
            check_root(element)
        open_elements.append(element)
        if len(open_elements) > _MAX_DEPTH:
            raise SourceBroken(f"{name} has elements nested more than {_MAX_DEPTH} deep.")


def _fits(elements: Sequence[Element], path: Sequence[str]) -> bool:
    return all(wanted in {"*", local_name(one.tag)} for wanted, one in zip(path, elements, strict=False))


@dataclass(slots=True)
class _BoundedXml:
    """A file with a limit for the bytes that are read without finding a record."""

    file: BinaryIO
    name: str
    most: int
    advice: str
    count: int = 0

    def restart(self) -> None:
        """Restart the count, because a record was found, or nothing is held in memory."""
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.count += len(data)
        if self.count > self.most + len(data):
            raise SourceBroken(f"{self.name}: {self.most} bytes were read without a record.{self.advice}")
        return data
