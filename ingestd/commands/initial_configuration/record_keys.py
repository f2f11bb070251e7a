"""Which columns name a record: their values are complete, and no combination of them repeats. Pure rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import msgspec
import polars as pl

from ingestd.core.contract import ColumnContract
from ingestd.core.template import Field, TemplateError, parse_template

_NAME_OF_A_KEY = re.compile(
    r"(?<![a-z])(id|uid|uuid|guid|key|no|nr|num|number|nummer|code|serial|sn|part|teil|item|position|pos|tag|iata)(?![a-z])",
    re.IGNORECASE,
)
_COLUMNS = 12
"""Number of columns of which combinations are tried."""
_MOST = 3
"""Number of columns in a combination."""

FORMAT_KEYS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "junit": (("classname", "name"), ("suite", "classname", "name")),
    "text": (("time", "name"),),
    "reqif": (("ReqIF.ForeignID",), ("@IDENTIFIER",)),
}
"""The fields that name a record of a format, in order of preference."""
NESTED_KEY, NESTED_PARENT = "item.path", "parent."
"""The field that names a record among nested ones, and the prefix of the fields of the record around it."""
FILE = "file.stem"
"""Names the record of a file that is one record."""
DOCUMENT = "document"
"""The kind of a file that is one record, such as an INI."""


class KeyProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The columns that name a record; empty if none do. ``doubt``: why a person decides, a sentence; empty: it is clear."""

    columns: tuple[str, ...]
    doubt: str = ""


def is_possible_key(column: str) -> bool:
    """Return True if a template can name the column."""
    try:
        parts = parse_template(f"{{{column}}}").parts
    except TemplateError:
        return False
    return parts == (Field(column),) and column != "column" and "${" not in column


def looks_like_key(column: str) -> bool:
    """Return True if the name of a column says that it names a record."""
    return _NAME_OF_A_KEY.search(column) is not None


def repeated_records(records: pl.DataFrame, key: Sequence[str]) -> int:
    """Return the number of records with a key that an earlier record has. Records without a complete key are not counted."""
    columns = [column for column in key if column in records.columns]
    if not columns:
        return max(0, records.height - 1)
    whole = records.select(columns).filter(
        pl.all_horizontal((pl.col(one) != "").fill_null(value=False) for one in columns)
    )
    return whole.height - whole.n_unique()


def propose_key(
    records: pl.DataFrame,
    columns: Mapping[str, ColumnContract],
    *,
    measured: Collection[str],
    primary: tuple[str, ...] = (),
    kind: str = "",
) -> KeyProposal:
    """Return the columns that name a record.

    ``measured``: the columns of numbers that are not whole, which name no record. ``primary``: the primary key of a table.
    ``kind``: the name of the format.
    """
    possible = [name for name, column in columns.items() if column.filled and is_possible_key(name)]
    for known in (primary, *FORMAT_KEYS.get(kind, ())):
        if known and set(known) <= set(possible) and not repeated_records(records, known):
            return KeyProposal(columns=known)
    unique = [name for name in possible if not repeated_records(records, (name,))]
    named = sorted((name for name in unique if name not in measured), key=lambda name: not looks_like_key(name))
    if named:
        is_clear = named[0] == next(iter(columns)) or looks_like_key(named[0])
        doubt = (
            ""
            if is_clear
            else f"The values of '{named[0]}' do not repeat, but its name does not say that it names a record."
        )
        return KeyProposal(columns=(named[0],), doubt=doubt)
    others = [name for name in possible if name not in measured][:_COLUMNS]
    for size in range(2, _MOST + 1):
        for together in combinations(others, size):
            if not repeated_records(records, together):
                names = " and ".join(f"'{name}'" for name in together)
                return KeyProposal(columns=together, doubt=f"No column names a record alone; {names} together do.")
    if unique:
        return KeyProposal(columns=(unique[0],), doubt=f"Only the numbers of '{unique[0]}' do not repeat.")
    return KeyProposal(columns=(), doubt="Each column and each combination of them has repeated or empty values.")
