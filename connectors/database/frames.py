r"""Frames of rows that a database sends as lines of text, and the settings ``binary`` and ``nan``, which all databases share.

The lines have the text format of PostgreSQL's COPY. Fields are separated by tabs. NULL is ``\N``. A backslash, a tab and a line
end inside a field are escaped with a backslash. So NULL, the empty text and the text ``\N`` differ. Control characters and
quotes may also be written as JSON escapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from connectors.database.options import DatabaseOptions
from connectors.database.port import Frame, ResultColumn, TextFault
from connectors.utf8 import is_utf8

BINARY = "holds binary data, which an entry can't hold; set binary, or use a query that casts or omits the column"
NOT_FINITE = "is not a finite number (nan: reject)"
NOT_UTF8 = "holds text that is not UTF-8"
_NOT_FINITE = ["NaN", "Infinity", "-Infinity"]
_ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\v": "\v", '\\"': '"'} | {
    f"\\u00{code}": chr(number) for number in range(32) for code in (f"{number:02x}", f"{number:02X}")
}
_MARK = "."
"""The fields of a row before each block: polars removes a byte order mark at the start, and refuses blank blocks."""


def apply_settings(
    frame: Frame, columns: Sequence[ResultColumn], options: DatabaseOptions, *, native_binary: bool = False
) -> Frame:
    """Apply the settings ``binary`` and ``nan`` to a frame. ``native_binary``: the database has its own text for bytes."""
    reject_bytes = options.binary == "reject" or (options.binary == "keep" and not native_binary)
    changed: list[pl.Series] = []
    faults = dict(frame.faults)
    for column in columns:
        values = frame.records.get_column(column.name)
        if column.kind == "binary" and reject_bytes:
            wrong, words = values.is_not_null(), BINARY
        elif column.kind == "number" and options.nan != "keep":
            wrong, words = values.is_in(_NOT_FINITE).fill_null(value=False), NOT_FINITE
        else:
            continue
        if not wrong.any():
            continue
        changed.append(pl.select(pl.when(~wrong).then(values).alias(column.name)).to_series())
        if column.kind == "binary" or options.nan == "reject":
            for row in wrong.arg_true():
                faults.setdefault(row, TextFault(column.name, f"Column {column.name} {words}."))
    return Frame(records=frame.records.with_columns(changed), faults=faults) if changed else frame


def parse_lines(lines: Sequence[bytes | memoryview], columns: Sequence[ResultColumn]) -> Frame:
    """Return the rows of ``lines``. Each line includes its line end. A field that is not UTF-8 becomes a fault of its row."""
    names = [column.name for column in columns]
    if not lines:
        return Frame(records=pl.DataFrame(schema=dict.fromkeys(names, pl.String)))
    block = b"".join(lines)
    faults: dict[int, TextFault] = {}
    if not is_utf8(block):
        block = b"".join(_without_faults(bytes(line), at, names, faults) for at, line in enumerate(lines))
    header = b"\t".join([_MARK.encode()] * len(names)) + b"\n"
    records = pl.read_csv(
        header + block,
        has_header=False,
        skip_rows=1,
        separator="\t",
        quote_char=None,
        null_values="\\N",
        empty_string_is_null=False,
        infer_schema=False,
        schema=dict.fromkeys(names, pl.String),
        extra_columns="raise",
        missing_columns="raise",
    )
    if block.count(b"\\") != block.count(b"\\N"):  # a backslash that does not begin a NULL
        records = records.with_columns(pl.all().str.replace_many(list(_ESCAPES), list(_ESCAPES.values())))
    return Frame(records=records, faults=faults)


def _without_faults(line: bytes, at: int, names: Sequence[str], faults: dict[int, TextFault]) -> bytes:
    """Return a line with NULL in place of each field that is not UTF-8. Store the first such field as the row's fault."""
    if is_utf8(line):
        return line
    fields = line.rstrip(b"\n").split(b"\t")
    for index, field in enumerate(fields):
        if not is_utf8(field):
            faults.setdefault(at, TextFault(names[index], f"Column {names[index]} {NOT_UTF8}."))
            fields[index] = b"\\N"
    return b"\t".join(fields) + b"\n"
