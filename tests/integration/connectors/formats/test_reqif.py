"""ReqIF: large files in bounded memory, zip files, and exports in another order."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from connectors.formats import resolve_format
from connectors.formats.reqif import ReqIf
from connectors.formats.reqif.reader import read_reqif
from ingestd.sdk import SourceBroken

HEAD = (
    '<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT><SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER="t" LONG-NAME="T"><SPEC-ATTRIBUTES>'
    '<ATTRIBUTE-DEFINITION-STRING IDENTIFIER="a" LONG-NAME="ID"/></SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE></SPEC-TYPES><SPEC-OBJECTS>'
)
TAIL = "</SPEC-OBJECTS></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"
GOLDEN = Path(__file__).parents[3] / "golden" / "formats" / "reqif.yaml"


def requirement(number: int, values: Sequence[str] = ()) -> str:
    own = (
        f'<ATTRIBUTE-VALUE-STRING THE-VALUE="R{number}"><DEFINITION><ATTRIBUTE-DEFINITION-STRING-REF>a'
        "</ATTRIBUTE-DEFINITION-STRING-REF></DEFINITION></ATTRIBUTE-VALUE-STRING>"
    )
    return f'<SPEC-OBJECT IDENTIFIER="r{number}"><VALUES>{own}{"".join(values)}</VALUES></SPEC-OBJECT>'


def names(file: io.BytesIO) -> list[str]:
    return [name for chunk in read_reqif(file, "a", element="SPEC-OBJECT") for name in chunk.records["ID"]]


def test_an_export_in_another_order_has_equal_records() -> None:
    numbers = list(range(50))
    shuffled = random.Random(3).sample(numbers, len(numbers))
    exports = [HEAD + "".join(map(requirement, order)) + TAIL for order in (numbers, shuffled)]
    first, second = (
        {
            row["@IDENTIFIER"]: row
            for chunk in ReqIf().read(io.BytesIO(text.encode()), "a")
            for row in chunk.records.to_dicts()
        }
        for text in exports
    )
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
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("module.reqif", HEAD + requirement(1) + TAIL)
        archive.writestr("files/picture.png", b"\x89PNG")
    for configured in (None, "reqif"):
        (chunk,) = resolve_format("export.reqifz", configured).read(io.BytesIO(out.getvalue()), "export.reqifz")
        assert chunk.records["ID"].to_list() == ["R1"]
        assert chunk.facts["file.member"] == "module.reqif"


def test_a_zip_file_that_is_cut_is_refused() -> None:
    with pytest.raises(SourceBroken, match=r"^export\.reqifz can't be unpacked: "):
        list(resolve_format("export.reqifz", None).read(io.BytesIO(b"PK\x03\x04"), "export.reqifz"))


def test_a_file_that_is_cut_anywhere_is_refused_with_a_sentence() -> None:
    data = str(YAML(typ="safe").load(GOLDEN)[0]["text"]).encode().rstrip()
    for end in range(0, len(data), 13):
        with pytest.raises(SourceBroken, match=r"^a is not well-formed XML: "):
            list(ReqIf().read(io.BytesIO(data[:end]), "a"))
