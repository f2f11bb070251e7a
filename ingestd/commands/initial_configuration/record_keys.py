"""The columns that identify a record: their values are complete, and their combined values do not repeat. Performs no I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations

import msgspec
import polars as pl

from ingestd.core.contract import ColumnContract
from ingestd.core.phrases import counted
from ingestd.core.template import Field, TemplateError, parse_template

_NAME_OF_A_KEY = re.compile(
    r"(?<![a-z])(id|uid|uuid|guid|key|no|nr|num|number|nummer|code|serial|sn|part|teil|item|position|pos|tag|iata)(?![a-z])",
    re.IGNORECASE,
)
_END_OF_A_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""The end of a word in names such as partNumber."""
_COLUMNS = 12
"""The maximum number of columns from which combinations are made."""
_MOST = 3
"""The maximum number of columns in a combination."""

FORMAT_KEYS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "junit": (("classname", "name"), ("suite", "classname", "name")),
    "text": (("time", "name"), ("time",), ("time", "message")),
    "reqif": (("ReqIF.ForeignID",), ("@IDENTIFIER",)),
}
"""The fields that identify a record of a format, in order of preference."""
NESTED_KEY, NESTED_PARENT = "item.path", "parent."
"""The field that identifies a nested record, and the prefix of the fields of the enclosing record."""
FILE = "file.stem"
"""The field that identifies the record of a file with a single record."""
DOCUMENT = "document"
"""The kind of a file with a single record, such as an INI."""


class KeyProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The columns that identify a record; empty if no columns do.

    ``doubt``: a sentence on why a person must decide; empty if no decision is necessary.
    """

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
    """Return True if the name of a column suggests that the column identifies a record."""
    return _NAME_OF_A_KEY.search(_END_OF_A_WORD.sub(" ", column)) is not None


def repeated_records(records: pl.DataFrame, key: Sequence[str]) -> int:
    """Return the number of records with the key of an earlier record. Records with an incomplete key are not counted."""
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
    """Return the columns that identify a record.

    ``measured``: the columns with fractions, which are proposed last. ``primary``: the primary key of a table. ``kind``: the
    name of the format.
    """
    usable = [name for name in columns if is_possible_key(name)]
    filled = [name for name in usable if columns[name].filled]
    none = KeyProposal(columns=(), doubt="Each column and each combination of them has repeated or empty values.")
    for known in (primary, *FORMAT_KEYS.get(kind, ())):
        if known and set(known) <= set(filled) and not repeated_records(records, known):
            return KeyProposal(columns=known)
    names = [name for name in usable if name not in measured]
    found = chain(_single(records, names, filled), _combined(records, [name for name in names if name in filled]))
    numbers = (
        KeyProposal(columns=(name,), doubt=f"Only the numbers of '{name}' do not repeat.")
        for name in filled
        if name in measured and not repeated_records(records, (name,))
    )
    return next(chain(found, numbers), none)


def _single(records: pl.DataFrame, names: Sequence[str], filled: Collection[str]) -> Iterator[KeyProposal]:
    """Yield single columns that identify a record. The first column, and columns with the name of a key, come first."""
    unique = [name for name in names if not repeated_records(records, (name,))]
    likely = [name for name in unique if name == records.columns[0] or looks_like_key(name)]
    for name in sorted(likely, key=lambda one: (one not in filled, not looks_like_key(one))):
        empty = records.height - records.filter(pl.col(name) != "").height
        if empty * 2 < records.height:
            doubt = f"{counted(empty, 'record')} without '{name}' would be rejected." if empty else ""
            yield KeyProposal(columns=(name,), doubt=doubt)
    for name in unique:
        if name in filled:
            doubt = f"The values of '{name}' do not repeat, but its name does not say that it names a record."
            yield KeyProposal(columns=(name,), doubt=doubt)


def _combined(records: pl.DataFrame, names: Sequence[str]) -> Iterator[KeyProposal]:
    """Yield the combinations of columns that identify a record together, smallest first."""
    for size in range(2, _MOST + 1):
        for together in combinations(names[:_COLUMNS], size):
            if not repeated_records(records, together):
                listed = " and ".join(f"'{name}'" for name in together)
                yield KeyProposal(columns=together, doubt=f"No column names a record alone; {listed} together do.")
