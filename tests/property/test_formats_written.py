"""Written rows and lines are read back unchanged, in every dialect and encoding."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from connectors.files.resubmission import fingerprint
from connectors.formats.csv import Csv
from connectors.formats.csv.dialect import Dialect, RowWriter, delimiter_by_name
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.writer import encode_line
from tests.support.format_records import located, read, rejects
from tests.support.format_records import rows as rows_of

DELIMITERS = (",", ";", "\t", "|")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        '"',
        '""',
        "#",
        "\r\n",
        "\n",
        "\r",
        ",",
        ";",
        "\t",
        "|",
        "0.10",
        "-0",
        "1e5",
        "true",
        "null",
        "[1, 2]",
        "ﬀ",
    ]
)
NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs"]), min_size=1, max_size=6).filter(
        lambda name: not name.startswith("\ufeff")
    ),
    min_size=2, max_size=4, unique=True,
)  # fmt: skip


def dialects() -> st.SearchStrategy[Dialect]:
    return st.builds(
        Dialect, delimiter=st.sampled_from(DELIMITERS), quote=st.sampled_from("\"'"), comment=st.sampled_from(["", "#"])
    )


def lines(names: list[str]) -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(TEXT, min_size=len(names), max_size=len(names)), min_size=1, max_size=6)


@given(dialect=dialects(), names=NAMES, data=st.data(), end=st.sampled_from(["\r\n", "\n"]))
def test_written_rows_are_read_back_unchanged(
    dialect: Dialect, names: list[str], data: st.DataObject, end: str
) -> None:
    rows = data.draw(lines(names))
    writer = RowWriter(dialect=dialect, end=end)
    text = "".join(map(writer.row, [names, *rows]))
    file_format = Csv(
        delimiter=dialect.delimiter, quote=dialect.quote, comment=dialect.comment, encoding="utf-8", header_row=1
    )
    chunks = read(file_format, text.encode())
    assert rejects(chunks) == {}
    assert [chunk.records.columns for chunk in chunks] == [names] * len(chunks)
    assert [list(row) for row in rows_of(chunks)] == rows
    if not dialect.comment:
        assert list(csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter, quotechar=dialect.quote)) == [
            names, *rows,
        ]  # fmt: skip


@given(dialect=dialects())
def test_a_delimiter_is_recognised_by_its_configured_name(dialect: Dialect) -> None:
    assert delimiter_by_name(dialect.delimiter_name) == dialect.delimiter


@given(
    records=st.lists(
        st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), TEXT | st.none(), min_size=1),
        min_size=1,
        max_size=6,
    )
)
def test_written_lines_are_read_back_unchanged(records: list[dict[str, str | None]]) -> None:
    text = "".join(map(encode_line, records))
    chunks = read(Ndjson(encoding="utf-8"), text.encode())
    found = [row for chunk in chunks for row in chunk.records.iter_rows(named=True)]
    assert rejects(chunks) == {}
    wanted = [{name: value for name, value in record.items() if value is not None} for record in records]
    assert [row for _, row in located(chunks)] == wanted
    for before, after in zip(records, found, strict=True):
        assert fingerprint(before) == fingerprint(after)
