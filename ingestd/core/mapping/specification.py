"""The specification of an entry mapping: its settings, as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.mapping.conversion import ValueRules

NO_RULES = ValueRules()

Table: TypeAlias = Mapping[str, str]
"""The values of a lookup by key."""


class ColumnSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the columns with names that match a glob of ``match`` and no glob of ``excluded``."""

    match: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def of(self, names: Sequence[str], *, but: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the selected columns, except the columns in ``but``."""
        return tuple(
            name
            for name in names
            if name not in but and _matches(name, self.match) and not _matches(name, self.excluded)
        )

    def excludes(self, glob: str, names: Sequence[str]) -> bool:
        """Return whether the glob matches at least one of the names."""
        return any(_matches(name, (glob,)) for name in names)


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(name == glob or fnmatchcase(name, glob) for glob in globs)


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """A CSV file with a header, and the columns of its keys and values. The reader of the table chooses the file's folder."""

    file: str
    key: str
    value: str
    delimiter: str = ","


class LookupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A named value from ``table``: the value in the row with a key that equals the text of the expression ``by``.

    ``missing``: the reaction if there is no such row. ``reject``: the record is rejected. ``none``: the value is missing.
    """

    table: TableSource
    by: str
    missing: Literal["reject", "none"] = "reject"


class EntrySpec(msgspec.Struct, frozen=True, kw_only=True):
    """One entry for each record (``value`` or ``expression``), or one for each column (``columns`` or ``selection``).

    With columns the key contains ``{column}``. ``types``: data types of single columns instead of ``type``. ``where``: only
    records for which this expression is true. ``lookup``: values of tables by name. ``let``: named expressions. ``file_name``:
    the form of the file's name, with parts in braces. ``rules``: the conversion of a value. ``each``: the field with the list
    of children, which are mapped as records, and the fields of the lists within its items. ``deadband``: a number, or a
    percentage such as ``1%``; a value is not sent if it differs from the sent value by at most this. ``optional``: names of
    the mapping that may be absent in all records of a reading.
    """

    key: str
    value: str | None = None
    columns: tuple[str, ...] = ()
    type: str = "scalar"
    expression: str | None = None
    selection: ColumnSelection | None = None
    types: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    let: tuple[tuple[str, str], ...] = ()
    file_name: str | None = None
    rules: ValueRules = NO_RULES
    lookup: tuple[tuple[str, LookupSpec], ...] = ()
    each: tuple[str, ...] = ()
    deadband: str | None = None
    optional: tuple[str, ...] = ()


def name_parts(form: str) -> re.Pattern[str]:
    """Return the pattern for the names of files with the form ``RUN{run}_{bench}.csv``; a part has at least one character.

    Raises:
        ValueError: the form has no part, a part twice, or two parts without text between them.
    """
    pieces = re.split(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", form)
    names = pieces[1::2]
    if not names or any(mark in text for text in pieces[::2] for mark in "{}"):
        raise ValueError("Expected the form of a file's name with its parts in braces, such as RUN{run}_{bench}.csv.")
    if len(set(names)) < len(names):
        raise ValueError("The form names a part twice.")
    if not all(pieces[2:-1:2]):
        raise ValueError("Two parts need text between them, such as {run}_{bench}.")
    # A part ends at the first occurrence of the text after it. The group is atomic, so the time is linear.
    texts = [f"(?>(?P<{name}>.+?){re.escape(after)})" for name, after in zip(names[:-1], pieces[2:-1:2], strict=True)]
    return re.compile(f"{re.escape(pieces[0])}{''.join(texts)}(?P<{names[-1]}>.+?){re.escape(pieces[-1])}", re.DOTALL)
