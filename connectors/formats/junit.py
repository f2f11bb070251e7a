"""JUnit: reports of tests in XML. Each test case is a record with its suites, status and properties.

There is no standard. The format reads the elements that Ant, Maven, pytest, GoogleTest, Jest and CTest write.
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
from ingestd.sdk.formats.record_chunk import RECORD_BYTES

_CASE = "testcase"
_SUITE = "testsuite"
_ROOTS = {_SUITE, "testsuites"}
_FAULTS = {"error": "error", "failure": "failed", "skipped": "skipped"}
"""Child elements that decide the status, the most severe first."""
_PROPERTIES = 10_000
"""The limit for the properties of a test case and its suites. Each test case repeats the properties of its suites."""
_STATED = {
    **dict.fromkeys(("fail", "failed", "failure"), "failed"),
    "error": "error",
    **dict.fromkeys(("notrun", "disabled", "skipped"), "skipped"),
}
"""The statuses that the attributes ``status`` and ``result`` of a test case without such a child element state."""


class JUnit(Format):
    """A report of tests in XML; each test case, at any depth of suites, is a record."""

    type: Literal["junit"] = "junit"

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the test cases as records, at least one chunk. Positions are the numbers of test cases from 1.

        Fields: ``suite`` (the names of its suites, joined by `` / ``), the attributes of the test case such as ``classname``,
        ``name`` and ``time``, ``status`` (passed, failed, error or skipped), ``message``, ``type`` and ``text`` of the element
        that decided the status, and ``property.NAME`` for each property. A property of a suite is used if the test case has no
        property of that name.

        Raises:
            SourceBroken: the file is no well-formed XML, declares entities, is no report of tests, or has too many properties.
        """

        def check_root(root: Element) -> None:
            tag = local_name(root.tag)
            if tag not in _ROOTS:
                raise SourceBroken(
                    f"{name} is no JUnit report: its first element is {tag}, not testsuites or testsuite."
                )

        def record(above: Sequence[Element], element: Element) -> FieldTexts | None:
            if local_name(element.tag) != _CASE:
                return None
            properties = _properties(above, element)
            if sum(len(one) + len(value) for one, value in properties) > RECORD_BYTES or len(properties) > _PROPERTIES:
                raise SourceBroken(
                    f"{name}: a test case and its suites have more than {_PROPERTIES} properties or {RECORD_BYTES} characters"
                    " of them. Remove properties from the suites."
                )
            return {**_case(above, element), **dict(properties)}

        yield from make_chunks(find_elements(file, name, record, is_kept=_is_kept, check_root=check_root))


def _is_kept(above: Sequence[Element], element: Element) -> bool:
    """Return whether an element that ended is still needed: as a part of a test case, or as a property of a suite."""
    inside = any(local_name(one.tag) == _CASE for one in above)
    return inside or local_name(element.tag) in {"properties", "property"}


def _case(above: Sequence[Element], element: Element) -> FieldTexts:
    suites = [one for one in above if local_name(one.tag) == _SUITE]
    record: FieldTexts = {"suite": " / ".join(one.get("name", "") for one in suites)}
    record |= {local_name(name): value for name, value in element.attrib.items() if local_name(name) != "status"}
    children = {local_name(child.tag): child for child in reversed(element)}
    fault = next((children[one] for one in _FAULTS if one in children), None)
    stated = [element.get(name, "").lower() for name in ("status", "result")]
    record["status"] = next((_STATED[one] for one in stated if one in _STATED), "passed")
    if fault is not None:
        record["status"] = _FAULTS[local_name(fault.tag)]
        record |= {name: value for name in ("message", "type") if (value := fault.get(name)) is not None}
        record |= {"text": fault.text.strip()} if fault.text and fault.text.strip() else {}
    return record


def _properties(above: Sequence[Element], element: Element) -> list[tuple[str, str]]:
    """Return the properties of a test case and its suites as fields, the outermost first."""
    return [
        (f"property.{one.get('name', '')}", one.get("value", one.text or ""))
        for holder in (*above, element)
        if local_name(holder.tag) in {_SUITE, _CASE}
        for part in holder
        if local_name(part.tag) == "properties"
        for one in part
    ]
