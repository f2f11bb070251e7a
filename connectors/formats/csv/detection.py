"""Detection of the dialect and the header of a CSV file by its first records. Performs no I/O.

The first row is the header, unless most rows below it have more fields and would be rejected. Only in this case, a later row
can be the header. Its fields must look like names, and a column below it must hold only numbers. Rows between these two rows
must not look like records below the first row. So no records are dropped if a program added a column and wrote a new header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

DELIMITERS = ("\t", ";", "|", ",")
"""The detected delimiters, in order of preference: delimiters that are rarer within fields come first."""

_SEPARATOR_LINE = re.compile(rb"sep=([!-/:-@\[-`{-~\t ])(?:\r\n|\n|\r(?!\n))", re.IGNORECASE)

SAMPLE_RECORDS = 60
_GROUPED = re.compile(r"[+\-\u2212]?[0-9]{1,3}([.,'\u2019 \u00a0\u202f][0-9]{3})*([.,][0-9]+)?")
"""A number with separators of thousands, or with a typographic minus."""
_MOST = 0.9
_LITTLE = 0.001

SampleRecord: TypeAlias = tuple[int, list[str]]
"""A row number and the fields of the record in that row."""


def separator_line(beginning: bytes) -> tuple[str, int] | None:
    """Return the delimiter that a first line such as ``sep=;`` states, and the length of the line; None without such a line."""
    found = _SEPARATOR_LINE.match(beginning)
    return (found[1].decode(), found.end()) if found else None


def choose_delimiter(
    samples: Mapping[str, Sequence[SampleRecord]], header_row: int | None, columns: int, *, preamble: bool = False
) -> str:
    """Return the delimiter that gives the header several fields, and most records the same number of fields.

    ``samples``: the first records as each delimiter separates them. ``columns``: the number of columns of a file without a
    header, else 0. For such a file, return the delimiter that gives the first record this number of fields. ``preamble``: see
    `find_header`.
    """
    best, best_score = ",", 0.0
    for delimiter, records in samples.items():
        if columns:
            if records and len(records[0][1]) == columns:
                return delimiter
            continue
        header = find_header(records, header_row, preamble=preamble)
        if header is None:
            continue
        row, fields = header
        below = [record for number, record in records if number > row]
        score = _share_alike(below, len(fields)) if len(fields) > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _share_alike(records: Sequence[list[str]], columns: int) -> float:
    """Return the share of records with ``columns`` fields.

    If no record has this number of fields, but most records have several fields, return a small number.
    """
    if not records:
        return 1.0
    alike = sum(len(record) == columns for record in records)
    separated = sum(len(record) > 1 for record in records)
    return alike / len(records) or (_LITTLE if separated * 2 > len(records) else 0.0)


def find_header(
    records: Sequence[SampleRecord], header_row: int | None, *, preamble: bool = False
) -> SampleRecord | None:
    """Return the header: the row ``header_row`` if it is set, else the first row that can be a header; None if there is none.

    ``preamble``: rows above the header are known to be facts, so they may have as many fields as the first row.
    """
    if header_row is not None:
        return next((record for record in records if record[0] == header_row), None)
    if not records:
        return None
    first, *below = records
    counts = Counter(len(fields) for _, fields in below)
    if not counts:
        return first
    common, times = counts.most_common(1)[0]
    if len(first[1]) >= common or times < 2:
        return first
    for index, (row, fields) in enumerate(below):
        rest = below[index + 1 :]
        alike = sum(len(other) == common for _, other in rest)
        if len(fields) == common and _could_be_names(fields):
            is_above_data = alike >= _MOST * len(rest) and _has_numbers(rest, common)
            above = [other for _, other in below[:index]]
            has_records = _has_records(first[1], above, fields, preamble=preamble)
            return (row, fields) if is_above_data and not has_records else first
    return first


def _has_records(first: Sequence[str], above: Sequence[Sequence[str]], later: Sequence[str], *, preamble: bool) -> bool:
    """Return True if the rows ``above`` the row ``later`` may be records with the header ``first``."""
    if above and set(first) <= set(later):
        return True
    return not preamble and len(first) > 1 and any(len(fields) == len(first) for fields in above)


def is_header(fields: Sequence[str], known: Sequence[str]) -> bool:
    """Return True if the first row of a file is a header.

    ``known``: the header of the earlier files of a log that consists of several files. The row is a header if it has at
    least half of these names. Otherwise it must have more or fewer fields than ``known``, and all of them must look like
    names. A row with the same number of fields may be text, which can't be distinguished from names.
    """
    common = len(set(fields) & set(known))
    if common and 2 * common >= min(len(set(fields)), len(set(known))):
        return True
    return len(fields) != len(known) and looks_like_header(fields)


def looks_like_header(fields: Sequence[str]) -> bool:
    """Return True if these could be column names, and each begins with a letter."""
    return _could_be_names(fields) and all(field[0].isalpha() for field in fields)


def _could_be_names(fields: Sequence[str]) -> bool:
    """Return True if these could be column names: none is empty, repeated or a number."""
    return all(fields) and len(set(fields)) == len(fields) and not any(map(_is_number, fields))


def _has_numbers(records: Sequence[SampleRecord], columns: int) -> bool:
    """Return True if a column holds only numbers. Without such a column, names can't be distinguished from text."""
    whole = [fields for _, fields in records if len(fields) == columns]
    return bool(whole) and any(all(_is_number(fields[at]) for fields in whole) for at in range(columns))


def _is_number(text: str) -> bool:
    text = text.strip()
    try:
        float(text.replace(",", "."))
    except ValueError:
        return _GROUPED.fullmatch(text) is not None
    return True
