"""ReqIF: large files in bounded memory, zip files, and exports in another order."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from connectors.formats import RecordChunk
from connectors.formats.reqif import ReqIf
from connectors.formats.reqif.reader import read_reqif
from ingestd.sdk import SourceBroken
from tests.support.convertible_files import zipped
from tests.support.format_records import located, read, read_named, sentence

HEAD = (
    '<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT><SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER="t" LONG-NAME="T"><SPEC-ATTRIBUTES>'
    '<ATTRIBUTE-DEFINITION-STRING IDENTIFIER="a" LONG-NAME="ID"/></SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE></SPEC-TYPES><SPEC-OBJECTS>'
)
TAIL = "</SPEC-OBJECTS></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"
GOLDEN = Path(__file__).parents[3] / "golden" / "formats" / "reqif.yaml"


def requirement(number: int) -> str:
    return f'<SPEC-OBJECT IDENTIFIER="r{number}"><VALUES>{value("a", f"R{number}")}</VALUES></SPEC-OBJECT>'


def test_an_export_in_another_order_has_equal_records() -> None:
    numbers = list(range(50))
    shuffled = random.Random(3).sample(numbers, len(numbers))
    exports = [HEAD + "".join(map(requirement, order)) + TAIL for order in (numbers, shuffled)]
    first, second = ({row["@IDENTIFIER"]: row for _, row in located(read(ReqIf(), one.encode()))} for one in exports)
    assert first == second
    assert first["r7"] == {"@IDENTIFIER": "r7", "ID": "R7"}


class Growing(io.RawIOBase):
    """A file that is made while it is read, so that it needs no memory."""

    def __init__(self, count: int, part: bytes, *, head: str, tail: str) -> None:
        self._parts = iter([head.encode(), *[part] * count, tail.encode()])
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, None)) is not None:
            self._rest += part
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def test_parts_that_are_no_records_may_be_of_any_size() -> None:
    part = f"<SPEC-HIERARCHY IDENTIFIER='h'>{' ' * 1000}</SPEC-HIERARCHY>".encode()
    file = Growing(
        2_000,
        part,
        head=f"{HEAD}{requirement(1)}</SPEC-OBJECTS><SPECIFICATIONS>",
        tail=TAIL.replace("SPEC-OBJECTS", "SPECIFICATIONS"),
    )
    chunks = list(read_reqif(file, "a", element="SPEC-RELATION", record_bytes=100_000))  # type: ignore[arg-type]
    assert [chunk.records.height for chunk in chunks] == [0]


def test_a_requirement_that_is_too_large_is_refused() -> None:
    value = b"<ATTRIBUTE-VALUE-STRING THE-VALUE='x'/>"
    file = Growing(10_000, value, head=f"{HEAD}<SPEC-OBJECT IDENTIFIER='r'><VALUES>", tail="")
    with pytest.raises(SourceBroken, match="100000 bytes were read without a record"):
        list(read_reqif(file, "a", element="SPEC-OBJECT", record_bytes=100_000))  # type: ignore[arg-type]


def test_a_zip_file_of_reqif_is_read_without_its_pictures() -> None:
    data = zipped({"module.reqif": HEAD + requirement(1) + TAIL, "files/picture.png": b"\x89PNG"})
    for configured in (None, ReqIf()):
        (chunk,) = read_named("export.reqifz", data, configured)
        assert chunk.records["ID"].to_list() == ["R1"]
        assert chunk.facts["file.member"] == "module.reqif"


def test_a_file_that_is_cut_anywhere_is_refused_with_a_sentence() -> None:
    data = str(YAML(typ="safe").load(GOLDEN)[0]["text"]).encode().rstrip()
    for end in range(0, len(data), 13):
        assert sentence(ReqIf(), data[:end]).startswith("a is not well-formed XML: ")


def definition(kind: str, identifier: str, name: str) -> str:
    return f'<ATTRIBUTE-DEFINITION-{kind} IDENTIFIER="{identifier}" LONG-NAME="{name}"/>'


def spec_type(identifier: str, *definitions: str) -> str:
    attributes = f"<SPEC-ATTRIBUTES>{''.join(definitions)}</SPEC-ATTRIBUTES>"
    return f'<SPEC-OBJECT-TYPE IDENTIFIER="{identifier}" LONG-NAME="T">{attributes}</SPEC-OBJECT-TYPE>'


def value(identifier: str, text: str) -> str:
    reference = f"<ATTRIBUTE-DEFINITION-STRING-REF>{identifier}</ATTRIBUTE-DEFINITION-STRING-REF>"
    return f'<ATTRIBUTE-VALUE-STRING THE-VALUE="{text}"><DEFINITION>{reference}</DEFINITION></ATTRIBUTE-VALUE-STRING>'


def spec_object(identifier: str, *values: str) -> str:
    kind = "<TYPE><SPEC-OBJECT-TYPE-REF>t</SPEC-OBJECT-TYPE-REF></TYPE>"
    return f'<SPEC-OBJECT IDENTIFIER="{identifier}">{kind}<VALUES>{"".join(values)}</VALUES></SPEC-OBJECT>'


def document(*parts: str) -> io.BytesIO:
    return io.BytesIO(
        f"<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT>{''.join(parts)}</REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>".encode()
    )


def chunks_of(*parts: str, **limits: int) -> list[RecordChunk]:
    return list(read_reqif(document(*parts), "a", element="SPEC-OBJECT", **limits))


def records(*parts: str) -> list[dict[str, str]]:
    found = located(chunks_of(*parts, rows=3))
    return [{name: field for name, field in row.items() if name[:1] != "@"} for _, row in found]


def test_two_attributes_with_one_name_are_two_fields_in_any_order_of_definitions_and_values() -> None:
    both = [definition("STRING", "a1", "Status"), definition("STRING", "a2", "Status")]
    both.append(definition("STRING", "a3", "Status 2"))
    other = spec_type("u", definition("STRING", "b1", "Status"))
    values = [value("a1", "draft"), value("a2", "closed"), value("a3", "x"), value("b1", "of another type")]
    expected = [{"Status": "draft", "Status 3": "closed", "Status 2": "x"}, {"Status": "of another type"}]
    for definitions, order in ((both, values[:3]), (both[::-1], values[2::-1])):
        types = f"<SPEC-TYPES>{spec_type('t', *definitions)}{other}</SPEC-TYPES>"
        objects = f"<SPEC-OBJECTS>{spec_object('r1', *order)}{spec_object('r2', values[3])}</SPEC-OBJECTS>"
        assert records(types, objects) == expected


def test_an_attribute_that_a_requirement_has_twice_is_two_fields() -> None:
    types = f"<SPEC-TYPES>{spec_type('t', definition('STRING', 'a', 'ID'))}</SPEC-TYPES>"
    objects = f"<SPEC-OBJECTS>{spec_object('r', value('a', '1'), value('a', '2'), value('a', '3'))}</SPEC-OBJECTS>"
    assert records(types, objects) == [{"ID": "1", "ID 2": "2", "ID 3": "3"}]


def test_definitions_after_their_use_name_the_fields() -> None:
    objects = "".join(spec_object(f"r{number}", value("a", f"R{number}")) for number in range(8))
    types = f"<SPEC-TYPES>{spec_type('t', definition('STRING', 'a', 'ID'))}</SPEC-TYPES>"
    before = chunks_of(types, f"<SPEC-OBJECTS>{objects}</SPEC-OBJECTS>")
    chunks = chunks_of(f"<SPEC-OBJECTS>{objects}</SPEC-OBJECTS>", types, rows=3)
    assert located(chunks) == located(before)
    assert located(chunks)[7] == (8, {"@IDENTIFIER": "r7", "@type": "T", "ID": "R7"})
    assert all("file.notice" not in chunk.facts for chunk in chunks)


def test_without_definitions_identifiers_are_the_names_and_a_notice_says_so() -> None:
    objects = f"<SPEC-OBJECTS>{spec_object('r', value('a', '1'))}</SPEC-OBJECTS>"
    chunks = chunks_of(objects)
    assert located(chunks) == [(1, {"@IDENTIFIER": "r", "@type": "t", "a": "1"})]
    assert "does not define attributes (SPEC-TYPES) and types (SPEC-TYPES)" in chunks[-1].facts["file.notice"]


def test_too_much_before_its_definitions_is_refused_with_what_to_do() -> None:
    objects = "".join(spec_object(f"r{number}", value("a", "x" * 500)) for number in range(8))
    with pytest.raises(SourceBroken, match=r"more than 2000 bytes of their use.* Export it again"):
        chunks_of(objects, deferred_bytes=2000)
