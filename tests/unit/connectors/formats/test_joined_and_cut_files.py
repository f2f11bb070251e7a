"""Files that were appended to each other, with a byte order mark in the middle, and files that were cut off."""

import codecs
import io
import zipfile
from collections.abc import Callable, Sequence

import polars as pl
import pytest

from connectors.formats.columnar import Arrow, Parquet
from connectors.formats.csv import Csv
from connectors.formats.csv.block_reader import SMALL_BYTES
from connectors.formats.csv.reader import read_csv
from connectors.formats.excel import Excel
from connectors.formats.fixed_width import FixedWidth
from ingestd.sdk import NOTICE, SourceBroken
from ingestd.sdk.formats import Format
from tests.support.convertible_files import zipped
from tests.support.format_records import parse, parser_sentence, read_named, rejects, rows
from tests.support.workbook_bytes import xls, xlsx

BOM = codecs.BOM_UTF8
CUT = "Its last line has no line end, so the file may be cut off there. The line was read as it is."
REPEATED = "The row repeats the header, because another file was appended here."
REORDERED = (
    "The row names the columns of the header in another order, because another file was appended here. The rows below it are read"
    " with this order."
)
FIXED = FixedWidth.model_validate(
    {"columns": [{"name": "part", "start": 1, "width": 2}, {"name": "mass", "start": 3, "width": 5}]}
)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("count", [1, SMALL_BYTES])
def test_two_exports_that_were_joined_have_no_mark_in_a_key(encoding: str, quote: str, count: int) -> None:
    export = f"{quote}part{quote},mass\n" + f"{quote}A{quote},1\n" * count
    found = read_named("a.csv", export.encode(encoding) * 2)
    assert set(rows(found)) == {("A", "1")}
    assert len(rows(found)) == 2 * count
    assert rejects(found) == {count + 2: REPEATED}


def test_another_header_after_a_mark_is_rejected_with_what_it_means() -> None:
    found = read_named("a.csv", b"part,mass\nA,1\n" + BOM + b"part,length\nB,2\n")
    assert rows(found) == [("A", "1"), ("B", "2")]
    assert "may be the header of another file" in rejects(found)[3]


@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("count", [1, SMALL_BYTES])
@pytest.mark.parametrize("end", [b"\n", b";\n"], ids=["named", "unnamed"])
def test_a_header_in_another_order_gives_the_rows_below_it_their_columns(mark: bytes, count: int, end: bytes) -> None:
    data = b"part;mass;length" + end + (b"A;1;2" + end) * count
    swapped = mark + b"part;length;mass" + end + (b"B;20;10" + end) * count + b"C;20;10;7;8\n"
    found = read_named("a.csv", data + swapped + mark + data)
    wide = f"The row has 5 fields but the header names {len(found[0].records.columns)}."
    assert [row[:3] for row in rows(found)] == [("A", "1", "2")] * count + [("B", "10", "20")] * count + [
        ("A", "1", "2")
    ] * count
    assert rejects(found) == {count + 2: REORDERED, 2 * count + 3: wide, 2 * count + 4: REPEATED}


def test_rejected_rows_below_another_order_have_the_names_of_that_order() -> None:
    data = b"part,mass,length\nA,1,2\nlength,part,mass\n3,B\n"
    [reject] = [one for chunk in read_named("a.csv", data) for one in chunk.rejects if one.position == 4]
    assert reject.record == {"length": "3", "part": "B"}


def test_a_value_that_equals_a_name_is_no_header() -> None:
    data = b"part,mass\npart,1\npart,part\nA,mass\n,\n"
    assert rows(read_named("a.csv", data)) == [("part", "1"), ("part", "part"), ("A", "mass"), ("", "")]
    assert rows(read_named("a.csv", b"note,,\nnote,,\n,note,\n")) == [("note", "", ""), ("", "note", "")]
    assert rows(read_named("a.csv", b"part\nA\npart\n")) == [("A",), ("part",)]


def test_known_sections_below_another_order_are_read_again() -> None:
    body = b"".join(b"P%d,%d\n" % (number, number) for number in range(2000))
    before, after = b"part,mass\n" + body, b"part,mass\nA,1\nmass,part\n" + body
    chunks = list(read_csv(io.BytesIO(before), "a.csv", known={}, section_bytes=500))
    known = {section.digest: section.records for chunk in chunks for section in chunk.sections if section.digest}
    found = list(read_csv(io.BytesIO(after), "a.csv", known=known, section_bytes=500))
    assert rows(found) == [("A", "1"), *((str(number), f"P{number}") for number in range(2000))]


def test_a_sheet_with_a_header_in_another_order_is_read_with_that_order() -> None:
    table = [["part", "mass", "length"], ["A", "1", "2"], ["part ", "length", "mass"], ["B", "20", "10"]]
    found = parse(Excel(), xls([*table, *table[:2]]), "a.xls")
    assert rows(found) == [("A", "1", "2"), ("B", "10", "20"), ("A", "1", "2")]
    assert rejects(found) == {3: REORDERED, 5: REPEATED}


@pytest.mark.parametrize("file_format", [Csv(), Csv(columns=["part", "mass"])])
def test_a_row_after_a_mark_is_a_record_without_it(file_format: Csv) -> None:
    data = b"part,mass\nA,1\n" + BOM + b"B,2\nC,3\n"
    assert rows(read_named("a.csv", data, file_format))[-2:] == [("B", "2"), ("C", "3")]


def test_lines_of_other_formats_begin_without_a_mark() -> None:
    assert rows(read_named("a.ndjson", b'{"n":1}\n' + BOM + b'{"n":2}\n')) == [("1",), ("2",)]
    assert rows(read_named("a.txt", b"A 21.00\n" + BOM + b"B 22.00\n", FIXED)) == [("A", "21.00"), ("B", "22.00")]


@pytest.mark.parametrize("name", ["a.yaml", "a.toml", "a.ini"])
def test_two_documents_in_one_file_are_rejected(name: str) -> None:
    sign = ": " if name == "a.yaml" else " = "
    with pytest.raises(
        SourceBroken, match=f"{name} has a byte order mark in line 2, because another file was appended"
    ):
        read_named(name, f"a{sign}1\n".encode() + BOM + f"b{sign}2\n".encode())


@pytest.mark.parametrize(
    ("name", "data", "file_format"),
    [
        ("a.csv", b"part,mass\nA,21.00\nB,2", None),
        ("a.csv", b"part,mass\n" + b"A,21.00\n" * SMALL_BYTES + b"B,2", None),
        ("a.csv", "part,mass\nA,21.00\nB,2".encode("utf-16"), None),
        ("a.ndjson", b'{"n":21.00}\n{"n":2}', None),
        ("a.txt", b"A 21.00\nB 2", FIXED),
        ("a.yaml", b"mass: 2", None),
        ("a.toml", b"mass = 2", None),
        ("a.ini", b"mass = 2", None),
    ],
)
def test_a_last_line_without_an_end_is_read_and_flagged(name: str, data: bytes, file_format: Format | None) -> None:
    found = read_named(name, data, file_format)
    assert rows(found)[-1][-1] == "2"
    assert found[-1].facts[NOTICE] == CUT
    end = "\n".encode("utf-16-le") if data.startswith(codecs.BOM_UTF16_LE) else b"\n"
    assert NOTICE not in read_named(name, data + end, file_format)[-1].facts


def test_a_file_with_sections_is_flagged_too() -> None:
    data = b"part,mass\n" + b"A,21.00\n" * 20_000 + b"B,2"
    known: dict[bytes, int] = {}
    for _ in range(2):
        chunks = list(read_csv(io.BytesIO(data), "a.csv", known=known))
        assert chunks[-1].facts[NOTICE] == CUT
        known = {section.digest: section.records for chunk in chunks for section in chunk.sections if section.digest}
    assert known


def test_a_guessed_encoding_is_still_reported() -> None:
    (chunk,) = read_named("a.csv", "part,mass\nMüller,2".encode("windows-1252"))
    assert chunk.facts[NOTICE].startswith("Its encoding is a guess")
    assert chunk.facts[NOTICE].endswith(CUT)


def test_a_cut_row_with_too_few_fields_is_rejected_and_never_filled() -> None:
    for ragged in ("reject", "fill"):
        file_format = Csv.model_validate({"ragged": ragged})
        found = read_named("a.csv", b"part,mass\nA,1\nB", file_format)
        assert rows(found) == [("A", "1")]
        assert rejects(found) == {
            3: "The row has 1 field but the header names 2, and the file ends in it without a line end: it may be cut off here."
        }
        whole = read_named("a.csv", b"part,mass\nA,1\nB\n", file_format)
        assert rows(whole) == ([("A", "1"), ("B", None)] if ragged == "fill" else [("A", "1")])


def parquet(*values: int) -> bytes:
    return written(pl.DataFrame({"a": values}).write_parquet)


def arrow(*values: int) -> bytes:
    return written(pl.DataFrame({"a": values}).write_ipc)


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


ONE, TWO = zipped({"one.csv": b"a\n1\n"}), zipped({"two.csv": b"a\n2\n"})


@pytest.mark.parametrize(
    "data", [ONE + TWO, TWO + ONE, ONE + TWO[:50], ONE + b"garbage"], ids=["joined", "swapped", "cut", "garbage"]
)
def test_zip_files_that_were_joined_lose_no_member_silently(data: bytes) -> None:
    with pytest.raises(
        SourceBroken, match=r"^a\.zip can't be unpacked: it (has data after its end|is several zip files)"
    ):
        read_named("a.zip", data)


def test_a_zip_file_may_have_a_comment_padding_and_a_program_before_it() -> None:
    out = io.BytesIO(b"#!/bin/sh\n" * 9000)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("one.csv", b"a\n1\n")
        archive.comment = b"PK\3\4 is how a zip file begins"
    assert rows(read_named("a.zip", out.getvalue() + bytes(100))) == [("1",)]


def test_a_workbook_behind_another_workbook_is_rejected() -> None:
    data = xlsx(["part"], ["A"])
    assert rows(parse(Excel(), data)) == [("A",)]
    assert "it is several zip files that were joined" in parser_sentence(Excel(), data + data)


@pytest.mark.parametrize("other", [(1, 2), (7, 8), (5,), range(5000)])
def test_columnar_files_that_were_joined_are_rejected(other: Sequence[int]) -> None:
    joined = parquet(1, 2) + parquet(*other)
    assert parser_sentence(Parquet(), joined) == (
        "a can't be read as Parquet: it is several Parquet files that were joined. Drop each file alone."
    )
    assert parser_sentence(Arrow(), arrow(1, 2) + arrow(*other)).startswith("a can't be read as Arrow: ")
