"""Messages for the owner of a file when a file, a header or a row is rejected."""

import io

import pytest

from connectors.formats import resolve_format
from connectors.formats.column_names import Naming
from connectors.formats.csv.dialect import Layout
from connectors.formats.csv.reader import read_csv
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.reader import read_ndjson
from ingestd.sdk import Reject, SourceBroken
from tests.support.format_records import rows


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xef\xbb\xbf", "parts.csv is empty"),
        (b"\n\r\n", "parts.csv is empty"),
        (b"a,,c,\n1,2,3,4\n", "no name to column 2, 4 of 4"),
        (b"a,\xff\n", "not UTF-8"),
        (b"a,b\0\n", "not UTF-8"),
        (b'a,"b\n1,2\n', "opens a quote that is never closed"),
        ("a,b\n1,2\n".encode("utf-16"), "not UTF-8"),
    ],
)
def test_a_file_without_a_usable_header_is_broken_with_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(SourceBroken, match=words):
        list(read_csv(io.BytesIO(data), "parts.csv", encoding="utf-8", layout=Layout(naming=Naming(unnamed="refuse"))))


def rejects(body: bytes) -> list[Reject]:
    return [
        reject for chunk in read_csv(io.BytesIO(b"a,b\n" + body), "x.csv", encoding="utf-8") for reject in chunk.rejects
    ]


@pytest.mark.parametrize(
    ("body", "reason", "record"),
    [
        (b"1\n", "The row has 1 field but the header names 2.", {"a": "1"}),
        (b"1,2,3\n", "The row has 3 fields but the header names 2.", {"a": "1", "b": "2", "field 3": "3"}),
        (
            b"1,\xff\n",
            "The row holds bytes that are not UTF-8. Save the file as UTF-8, or set encoding.",
            {"a": "1", "b": "\\xff"},
        ),
        (b"1,x\0y\n", "The row holds a NUL byte, which is not allowed in text.", {"a": "1", "b": "x\\x00y"}),
        (b'1,"x\n', "The row opens a quote that is not closed before the end of the file.", {"a": "1", "b": "x\n"}),
    ],
)
def test_a_bad_row_is_rejected_with_its_reason_and_its_fields(body: bytes, reason: str, record: dict[str, str]) -> None:
    assert rejects(body) == [Reject(position=2, reason=reason, record=record)]


def test_an_unclosed_quote_beyond_the_size_limit_is_rejected_in_bounded_memory() -> None:
    data = b'a,b\n1,2\n3,"' + b"x" * 5000 + b'"\n4,5\n'
    chunks = list(read_csv(io.BytesIO(data), "x.csv", block_bytes=100, record_bytes=1000))
    assert rows(chunks) == [("1", "2"), ("4", "5")]
    (reject,) = [reject for chunk in chunks for reject in chunk.rejects]
    assert reject.position == 3
    assert "larger than 1000 bytes" in reject.reason
    assert len(reject.record["text"] or "") == 1000


def test_objects_without_common_names_are_read_in_frames_of_bounded_size() -> None:
    data = b"\n".join(b'{"n%d": %d}' % (i, i) for i in range(200))
    chunks = list(read_ndjson(io.BytesIO(data), "x.ndjson", cells=500))
    assert sum(chunk.records.height for chunk in chunks) == 200
    assert max(chunk.records.height * chunk.records.width for chunk in chunks) <= 500


def test_the_configured_format_takes_precedence_over_the_name() -> None:
    assert resolve_format("a.csv", "ndjson") == Ndjson()
    assert resolve_format("a.csv", Ndjson()) == Ndjson()


def test_a_file_name_of_an_unknown_format_is_reported() -> None:
    with pytest.raises(
        SourceBroken, match=r"report\.txt: its suffix must be one of \.csv, \.tsv, \.tab, \.ndjson, \.jsonl"
    ):
        resolve_format("report.txt", None)
