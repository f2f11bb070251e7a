"""Nested records, such as the items of a bill of materials: each record has its own fields and the fields of all outer records.

An own field keeps its name. A field of the directly enclosing record is ``parent.NAME``, and a field of the next outer
record is ``parent.parent.NAME``. ``item.path`` joins the identifiers of all records from the outermost record to this
record by dots. This module performs no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from pydantic import Field

from connectors.formats.record_chunks import FieldTexts, Unusable
from ingestd.sdk import SourceBroken

ANYWHERE = "**/"
PATH = "item.path"
_PARENT = "parent."
MOST_NESTED = 50
"""The maximum depth of records in records. Each record repeats the fields of all records around it."""
_REPEATED = 64
_REPEATED_SIZE = 16 * 2**20
"""The limit for the size of all repeated fields of a tree is this size plus `_REPEATED` times the size of the own fields."""
_CELL = 8

ItemId = Annotated[
    str,
    Field(
        description=(
            f"The field that identifies a record among its siblings, for records: '{ANYWHERE}...'. Then {{{PATH}}} joins the"
            " identifiers from the outermost record to this one by dots, for keys of nested records."
        ),
    ),
]


class NestedItem(msgspec.Struct, kw_only=True):
    """A record in a tree. ``fault``: why it can't be read, as the end of a sentence. ``items``: the records directly in it."""

    fields: FieldTexts
    items: Sequence[NestedItem] = ()
    fault: str = ""


def nested_name(records: str, item_id: str) -> str | None:
    """Return the name of nested records, or ``*`` for everything that has ``item_id``; None for a path without ``**/``.

    Raises:
        ValueError: the settings contradict each other.
    """
    name = records.removeprefix(ANYWHERE)
    if name == records:
        if "**" in records:
            raise ValueError("records can have ** only at its beginning, followed by one name, such as '**/Item'")
        if item_id:
            raise ValueError(f"id needs records: '{ANYWHERE}...', because it identifies nested records")
        return None
    if not name or "/" in name or "**" in name:
        raise ValueError("records has one name after **/, such as '**/Item'")
    if name == "*" and not item_id:
        raise ValueError(f"records: '{ANYWHERE}*' needs id: it reads everything that has this field")
    return name


def nested_records(trees: Iterable[NestedItem], name: str, item_id: str) -> Iterator[FieldTexts | Unusable]:
    """Yield the records of trees. A record comes before the records in it. ``name`` names the file in errors.

    A record that can't be used has no path. So the records in it are rejected, too.

    Raises:
        SourceBroken: records are nested more than `MOST_NESTED` deep, or the repeated fields of a tree are too large.
    """
    number = 0
    for tree in trees:
        own_size = repeated_size = 0
        names = _ParentNames()
        left = [(tree, _Outer())]
        while left:
            item, outer = left.pop()
            number += 1
            if outer.depth >= MOST_NESTED:
                raise SourceBroken(
                    f"{name} has records nested more than {MOST_NESTED} deep (records), the limit for records in records."
                )
            fields = item.fields
            reason, path = _fault(item, outer, number, item_id)
            if reason:
                yield Unusable(reason=reason, record=fields)
            else:
                yield {**fields, **({PATH: path} if item_id else {}), **outer.inherited}
            own_size += _size(fields)
            repeated_size += outer.size  # does not count the path, which is not longer than its identifiers
            if repeated_size > _REPEATED * own_size + _REPEATED_SIZE:
                raise SourceBroken(
                    f"{name}: the fields of outer records would be repeated more than {_REPEATED} times in inner records"
                    " (records). Shorten the long texts of the outer records."
                )
            if item.items:
                inherited = {names[key]: value for key, value in {**fields, **outer.inherited}.items()}
                here = _Outer(
                    inherited=inherited,
                    size=_size(inherited),
                    path=path,
                    depth=outer.depth + 1,
                    rejected=number if reason else 0,
                )
                left += [(one, here) for one in reversed(item.items)]


class _ParentNames(dict[str, str]):
    """Maps the name of a field to its name in inner records, ``parent.NAME``. All records of a tree share these strings."""

    def __missing__(self, name: str) -> str:
        self[name] = f"{_PARENT}{name}"
        return self[name]


class _Outer(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that a record inherits from the records around it.

    ``size``: the size of the inherited fields. ``depth``: the number of records around the record. ``rejected``: the number of
    the record directly around it, if that record was rejected; else 0.
    """

    inherited: FieldTexts = {}
    size: int = 0
    path: str = ""
    depth: int = 0
    rejected: int = 0


def _fault(item: NestedItem, outer: _Outer, number: int, item_id: str) -> tuple[str, str]:
    """Return why a record is rejected (empty: it is valid), and its path."""
    if item.fault:
        return f"Item {number} {item.fault}.", ""
    if outer.rejected:
        return f"Item {number} is in item {outer.rejected}, which was rejected. Correct that item.", ""
    added = {*outer.inherited, *([PATH] if item_id else [])}
    if twice := next((key for key in item.fields if key in added), None):
        return (
            f"Item {number} has a field {twice!r}, but this name is reserved for fields of the records around it (records).",
            "",
        )
    identifier = item.fields.get(item_id) if item_id else ""
    if item_id and not identifier:
        return f"Item {number} has no {item_id!r} (id), so it has no path.", ""
    return "", f"{outer.path}.{identifier}" if outer.path else identifier or ""


def _size(fields: FieldTexts) -> int:
    return sum(len(value or "") + _CELL for value in fields.values())
