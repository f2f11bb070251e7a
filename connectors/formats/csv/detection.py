"""Which dialect a CSV file has and where its header stands, by the look of its first records. Pure.

A file that has its header in the first row, as most have, is never taken for another: only where the rows below would all be
parked for having more fields is a later row considered, and then it must look like names that stand above numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

DELIMITERS = ("\t", ";", "|", ",")
"""Those that are looked for; where two fit alike, the one that is rarer within fields (a comma may be a decimal one)."""

_SEPARATOR_LINE = re.compile(rb"sep=([!-/:-@\[-`{-~\t ])(?:\r\n|\n|\r(?!\n))", re.IGNORECASE)

SAMPLE_RECORDS = 60
_MOST = 0.9
_LITTLE = 0.001

SampleRecord: TypeAlias = tuple[int, list[str]]
"""A row number and the fields of the record there."""


def separator_line(beginning: bytes) -> tuple[str, int] | None:
    """The delimiter that a first line such as ``sep=;`` states, and the length of that line; None: no such line."""
    found = _SEPARATOR_LINE.match(beginning)
    return (found[1].decode(), found.end()) if found else None


def choose_delimiter(samples: Mapping[str, Sequence[SampleRecord]], header_row: int | None, columns: int) -> str:
    """The delimiter under which the header has several fields and most records as many; ``samples`` by delimiter.

    ``columns``: how many there are in a file without header, else 0: it is the one that makes as many fields.
    """
    best, best_score = ",", 0.0
    for delimiter, records in samples.items():
        if columns:
            if records and len(records[0][1]) == columns:
                return delimiter
            continue
        header = find_header(records, header_row)
        if header is None:
            continue
        row, fields = header
        below = [record for number, record in records if number > row]
        score = _share(below, len(fields)) if len(fields) > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _share(records: Sequence[list[str]], columns: int) -> float:
    """Which share of the records has so many fields; where all are ragged, a little if they are parted at all."""
    if not records:
        return 1.0
    alike = sum(len(record) == columns for record in records)
    parted = sum(len(record) > 1 for record in records)
    return alike / len(records) or (_LITTLE if parted * 2 > len(records) else 0.0)


def find_header(records: Sequence[SampleRecord], header_row: int | None) -> SampleRecord | None:
    """The header among the first records: the one in the given row, else the first that can be one; None: not among them."""
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
    for place, (row, fields) in enumerate(below):
        rest = below[place + 1 :]
        alike = sum(len(other) == common for _, other in rest)
        if len(fields) == common and _are_names(fields):
            return (row, fields) if alike >= _MOST * len(rest) and _has_numbers(rest, common) else first
    return first


def is_header(fields: Sequence[str], known: Sequence[str]) -> bool:
    """Whether the first row of a file whose predecessors had the header ``known`` is a header, too.

    It is one if it has half of the names. One of none of them is only believed if it has another number of fields, all
    of which could be names: text can't be told from names otherwise.
    """
    common = len(set(fields) & set(known))
    if common and 2 * common >= min(len(set(fields)), len(set(known))):
        return True
    return len(fields) != len(known) and _are_names(fields) and all(field[0].isalpha() for field in fields)


def _are_names(fields: Sequence[str]) -> bool:
    """Whether these could be column names: none empty, none twice, none a number."""
    return all(fields) and len(set(fields)) == len(fields) and not any(map(_is_number, fields))


def _has_numbers(records: Sequence[SampleRecord], columns: int) -> bool:
    """Whether some column holds nothing but numbers: names above text can't be told from text."""
    whole = [fields for _, fields in records if len(fields) == columns]
    return bool(whole) and any(all(_is_number(fields[at]) for fields in whole) for at in range(columns))


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True
