"""Rejects a reading if the mapping names a field that no record of the reading has. Performs no I/O.

If a source renames a field, no record has a value under the old name. Without this rule, all entries of the reading would then
be removed. A reading without records is not rejected. A record may lack a field that other records of its reading have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

import msgspec

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.column import listed
from ingestd.core.mapping.rule_group import FILE_NAME, PREAMBLE
from ingestd.core.phrases import clipped
from ingestd.core.record import Batch

ChildField: TypeAlias = tuple[tuple[str, ...], str]
"""The lists of ``each``, and a name that the mapping uses in their items."""

_COLUMNS = 1_000
"""The maximum number of field names that are kept for a sentence, because a source may have any number of names."""

OPTIONAL = "If the source may lack it, add it to 'optional'."


class AbsentField(msgspec.Struct, frozen=True, kw_only=True):
    """A name in the mapping for which no record has a field, and the sentence about this name."""

    name: str
    sentence: str


class NamesFields(Protocol):
    """A mapping or a group stage, which names fields of records."""

    def check_facts(self, batch: Batch) -> None:
        """Check that a partition has the facts that are used.

        Raises:
            SourceBroken: a fact is missing.
        """

    def absent_among(self, columns: Sequence[str], facts: Mapping[str, str]) -> tuple[str, ...]:
        """Return the required names that are neither columns nor facts. A further column never makes another name absent."""

    def absent_sentence(self, name: str, columns: Sequence[str], *, header: bool) -> str:
        """Return the sentence about an absent name. ``columns``: the columns of a ``header``, or the fields of all records."""


class AbsentFields:
    """Finds the absent fields of one reading, in constant memory.

    ``whole``: the reading is evaluated at its end. If False, each batch is evaluated alone, such as each request of a client.
    """

    def __init__(self, user: NamesFields, *, whole: bool) -> None:
        self._user = user
        self._whole = whole
        self._has_begun = self._has_header = False
        self._sees_all = True
        self._absent: tuple[str, ...] | None = None
        self._columns: dict[str, None] = {}
        self._children: dict[ChildField, bool] = {}

    @property
    def is_undecided(self) -> bool:
        """True while at least one field was found in no record, so that the reading may have to be rejected."""
        return bool(self._absent) or not all(self._children.values())

    def add(self, batch: Batch) -> AbsentField | None:
        """Add a batch before it is mapped. If all its records must be rejected because a field is absent, return this field.

        Raises:
            SourceBroken: the header or the whole reading lacks a field, or a fact is missing.
        """
        columns = batch.records.columns
        if not self._has_begun:
            self._user.check_facts(batch)
            if batch.header and (absent := self._user.absent_among(columns, batch.facts)):
                raise SourceBroken(self._user.absent_sentence(absent[0], columns, header=True))
            self._has_begun, self._has_header = True, batch.header
        if self._has_header:
            return None
        self._sees_all = self._sees_all and not any(section.known for section in batch.sections)
        if batch.records.height and (not self._whole or self._absent is None or self._absent):
            # A record that was rejected because of one field shows the names of all its fields.
            rejected = (name for one in batch.rejects if one.field for name in one.record)
            columns = list(dict.fromkeys((*columns, *rejected)))
            absent = self._user.absent_among(columns, batch.facts)
            if not self._whole:
                return self._found(absent, columns)
            self._absent = tuple(name for name in absent if self._absent is None or name in self._absent)
            new = (name for name in columns if name not in self._columns)
            self._columns |= dict.fromkeys(islice(new, _COLUMNS - len(self._columns)))
        if batch.last and self._sees_all and (found := self._found(self._absent or (), list(self._columns))):
            raise SourceBroken(found.sentence)
        return None

    def add_children(self, found: Mapping[ChildField, bool], *, is_whole: bool, last: bool) -> AbsentField | None:
        """Add which fields the mapping found in lists. If a field is absent, and the batch must be rejected, return this field.

        ``is_whole``: all records of the batch were mapped. If False, the other records did not change, and had the fields before.

        Raises:
            SourceBroken: the reading ends, and no item had a field.
        """
        if not self._whole:
            absent = [one for one, is_present in found.items() if not is_present]
            return _child_field(absent[0]) if absent else None
        self._sees_all = self._sees_all and is_whole
        for one, is_present in found.items():
            self._children[one] = self._children.get(one, False) or is_present
        absent = [one for one, is_present in self._children.items() if not is_present]
        if last and absent and self._sees_all:
            raise SourceBroken(_child_field(absent[0]).sentence)
        return None

    def _found(self, absent: Sequence[str], columns: Sequence[str]) -> AbsentField | None:
        if not absent:
            return None
        # A source may have very long names, and the sentence becomes the reason of each record.
        sentence = clipped(self._user.absent_sentence(absent[0], columns, header=False))
        return AbsentField(name=absent[0], sentence=sentence)


def _child_field(absent: ChildField) -> AbsentField:
    lists, name = absent
    sentence = f"No item of '{'.'.join(lists)}' has a field '{name}', which the mapping names. {OPTIONAL}"
    return AbsentField(name=name, sentence=sentence)


def no_preamble_sentence(name: str, facts: Mapping[str, str]) -> str:
    """Return the sentence that no row above the header gives a fact; it lists the existing rows."""
    known = [one.removeprefix(PREAMBLE) for one in facts if one.startswith(PREAMBLE)]
    names = f"the rows name {listed(known)}" if known else "set 'preamble: true' in its format if it has such rows"
    return (
        f"The mapping uses {{{name}}}, but no row above the header of '{facts.get(FILE_NAME, '')}' gives "
        f"'{name.removeprefix(PREAMBLE)}' a value; {names}. {OPTIONAL}"
    )


def no_unit_sentence(name: str) -> str:
    """Return the sentence that no row below the header gives a unit."""
    return (
        f"The mapping uses {{{name}}}, but the source has no such unit; set 'units_row: true' in its format. {OPTIONAL}"
    )
