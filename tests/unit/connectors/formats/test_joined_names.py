"""The joined names of nested fields: each repeats the names around it, so their length and the memory for them are limited."""

from __future__ import annotations

import tracemalloc

import pytest

from connectors.formats.json import Json
from connectors.formats.xml import Xml
from ingestd.sdk import Position, SourceBroken
from ingestd.sdk.formats import Format
from tests.support.format_records import positions, read_named, rejects

LONG = "k" * 40_000
MANY = range(2_000)
MIB = 2**20

NDJSON = '{"n":1}\n{"' + LONG + '":{' + ",".join(f'"{at}":1' for at in MANY) + '}}\n{"n":3}\n'
ELEMENTS = f"<{LONG}>{''.join(f'<b{at}/>' for at in MANY)}</{LONG}>"
XML = f"<r><a>1</a><a>{ELEMENTS}</a><a>3</a></r>"
WORDS = "has nested names of more than"


def peak_of(name: str, data: str, file_format: Format | None = None) -> tuple[dict[Position, str], list[Position], int]:
    """Return the reasons of rejected records, the positions of those that were read, and the most bytes of Python objects."""
    tracemalloc.start()
    try:
        chunks = read_named(name, data.encode(), file_format)
        return rejects(chunks), positions(chunks), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "data", "file_format", "words"),
    [
        ("a.ndjson", NDJSON, None, f"Line 2 {WORDS}"),
        ("a.json", f"[{NDJSON.strip().replace(chr(10), ',')}]", None, f"Item 2 {WORDS}"),
        ("a.xml", XML, None, f"The element 'a' {WORDS}"),
        ("a.xml", XML, Xml(lists=(LONG,)), ""),
        ("a.xml", XML, Xml(records="**/a"), f"Item 2 {WORDS}"),
        ("a.xml", XML.replace(ELEMENTS, f"<c><l>{ELEMENTS}</l></c>"), Xml(lists=("c/l",)), f"The element 'a' {WORDS}"),
    ],
)
def test_a_record_with_too_long_joined_names_is_rejected_alone_in_bounded_memory(
    name: str, data: str, file_format: Format | None, words: str
) -> None:
    rejected, kept, peak = peak_of(name, data, file_format)
    assert set(rejected) == ({2} if words else set())
    assert words in rejected.get(2, "")
    assert kept == [at for at in (1, 2, 3) if at not in rejected]
    assert peak < 30 * MIB


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.yaml", f"? {LONG}\n:\n" + "".join(f"  {at}: 1\n" for at in MANY)),
        ("a.toml", f"[{LONG}]\n" + "".join(f"{at} = 1\n" for at in MANY)),
        ("a.ini", f"[{LONG}]\n" + "".join(f"{at} = 1\n" for at in MANY)),
    ],
)
def test_a_document_with_too_long_joined_names_is_rejected(name: str, data: str) -> None:
    with pytest.raises(SourceBroken, match=f"{name} {WORDS}"):
        read_named(name, data.encode())


def test_long_names_and_many_short_ones_are_read() -> None:
    names = ",".join(f'"a name of field {at}":{at}' for at in range(20_000))
    _, kept, _ = peak_of("a.ndjson", f'{{"{LONG}":1}}\n{{"{"k" * 100}":{{{names}}}}}\n')
    assert kept == [1, 2]


@pytest.mark.parametrize(
    ("name", "file_format"),
    [("a.ndjson", None), ("a.json", Json(records="**/p")), ("a.json", Json(records="**/*", id="n"))],
)
def test_a_value_is_not_copied_for_each_object_around_it(name: str, file_format: Format | None) -> None:
    def peak(depth: int) -> int:
        data = '{"k":' * depth + '{"n":1,"p":{"n":1},"t":"' + "x" * MIB + '"}' + "}" * depth
        return peak_of(name, data, file_format)[2]

    assert peak(500) < peak(5) + 5 * MIB


@pytest.mark.parametrize(
    ("name", "data", "file_format"),
    [
        ("a.xml", f"<I {LONG}='1'>" + "<I n='1'><I n='1'/></I>" * 1_000 + "</I>", Xml(records="**/I")),
        (
            "a.json",
            '{"I":{"' + LONG + '":1,"I":[' + ",".join(['{"n":1,"I":{"n":1}}'] * 1_000) + "]}}",
            Json(records="**/I"),
        ),
    ],
)
def test_the_records_of_a_tree_share_the_names_of_inherited_fields(name: str, data: str, file_format: Format) -> None:
    _, kept, peak = peak_of(name, data, file_format)
    assert len(kept) == 2_001
    assert peak < 15 * MIB
