"""JUnit: reports of tests in XML, each test case a record with its suites, status and properties.

There is no standard; the elements are those that Ant, Maven, pytest, GoogleTest, Jest and CTest write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal
from xml.etree.ElementTree import Element

from connectors.formats.record_chunks import FieldTexts, make_chunks
from connectors.formats.xml.reader import find_elements
from connectors.formats.xml.record import local_name
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import Format, RecordChunk

_CASE = "testcase"
_SUITE = "testsuite"
_ROOTS = {_SUITE, "testsuites"}
_FAULTS = {"error": "error", "failure": "failed", "skipped": "skipped"}
"""Child elements that decide the status, the most severe first."""
_NOT_RUN = {"notrun", "disabled", "skipped"}


class JUnit(Format):
    """A report of tests in XML; each test case, at any depth of suites, is a record."""

    type: Literal["junit"] = "junit"

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the test cases as records, at least one chunk. Positions are their numbers from 1.

        Fields: ``suite`` (the names of its suites, joined by `` / ``), the attributes of the test case such as ``classname``,
        ``name`` and ``time``, ``status`` (passed, failed, error or skipped), ``message``, ``type`` and ``text`` of what decided
        the status, and ``property.NAME`` for each property of the case or, if it has none of that name, of its suites.

        Raises:
            SourceBroken: the file is no well-formed XML, declares entities, or is no report of tests.
        """

        def check_root(root: Element) -> None:
            tag = local_name(root.tag)
            if tag not in _ROOTS:
                raise SourceBroken(
                    f"{name} is no JUnit report: its first element is {tag}, not testsuites or testsuite."
                )

        def record(above: Sequence[Element], element: Element) -> FieldTexts | None:
            return _case(above, element) if local_name(element.tag) == _CASE else None

        yield from make_chunks(find_elements(file, name, record, is_kept=_is_kept, check_root=check_root))


def _is_kept(above: Sequence[Element], element: Element) -> bool:
    """Return whether an element that ended is still needed: parts of a test case, and the properties of suites."""
    inside = any(local_name(one.tag) == _CASE for one in above)
    return inside or local_name(element.tag) in {"properties", "property"}


def _case(above: Sequence[Element], element: Element) -> FieldTexts:
    suites = [one for one in above if local_name(one.tag) == _SUITE]
    record: FieldTexts = {"suite": " / ".join(one.get("name", "") for one in suites)}
    record |= {local_name(name): value for name, value in element.attrib.items() if local_name(name) != "status"}
    children = {local_name(child.tag): child for child in reversed(element)}
    fault = next((children[one] for one in _FAULTS if one in children), None)
    ran = {element.get("status", "").lower(), element.get("result", "").lower()}.isdisjoint(_NOT_RUN)
    record["status"] = _FAULTS[local_name(fault.tag)] if fault is not None else "passed" if ran else "skipped"
    if fault is not None:
        record |= {name: value for name in ("message", "type") if (value := fault.get(name)) is not None}
        record |= {"text": fault.text.strip()} if fault.text and fault.text.strip() else {}
    for holder in (*suites, element):
        record |= {
            f"property.{one.get('name', '')}": one.get("value", one.text or "")
            for part in holder
            if local_name(part.tag) == "properties"
            for one in part
        }
    return record
