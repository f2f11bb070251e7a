"""Children: the items of JSON lists in the fields of records, each as a separate record.

A list may be in an item of another list, to any depth. All lists of one level are expanded together, then the next level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, repeat

import msgspec
import polars as pl

from ingestd.core.json_depth import require_depth
from ingestd.core.mapping.child_fields import OBJECT, ChildFields, has_field, read_fields
from ingestd.core.mapping.column import column_named
from ingestd.core.mapping.program import ORDER
from ingestd.core.record import CHILD_OF, position_text

INDEX = "index"
"""The number of a child in its list, from 1."""

PARENT = "parent."
"""The prefix of the name of a field in the record or child that contains the list."""

LIST, POSITION, ROW_HASH = "\0list", "\0position", "\0row_hash"
RECORD = "\0record"
"""The name of the column with the `ORDER` of each child's record."""

PATH = "\0path"
"""The path of a child in its record, such as ``parts[2].properties[1]``."""

MOST_CHILDREN = 1_000_000
"""The maximum number of items in a list; a record with a longer list is rejected."""

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class ChildFault(msgspec.Struct, frozen=True, kw_only=True):
    """A record or child that has no children, because its list can't be used.

    ``record``: the `ORDER` of the record. ``position``: the position of the child; empty if the fault is in the record itself.
    """

    record: int
    position: str
    reason: str
    field: str


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """Children of records. ``frame``: a row for each child: wanted names, `PATH`, `POSITION`, `ROW_HASH`, `RECORD`, `ORDER`.

    ``found``: for each required name, whether an item has it. Names of a level without items are not in this mapping.
    """

    frame: pl.DataFrame
    faults: tuple[ChildFault, ...]
    found: Mapping[str, bool]


class _Presence(msgspec.Struct, kw_only=True):
    """For each of the ``required`` names and lists, whether an item has it. ``found``: see `Children`."""

    required: Collection[str]
    required_lists: Collection[str]
    found: dict[str, bool] = msgspec.field(default_factory=dict)

    def add(
        self, items: Sequence[msgspec.Raw], read: ChildFields, wanted: Mapping[str, str], below: Sequence[str]
    ) -> None:
        """Add the items of one level; see `_expand_level`."""
        values = [(name, field, read.columns.get(field, ())) for name, field in wanted.items() if name in self.required]
        values += [(name, name, read.lists) for name in below[:1] if name in self.required_lists]
        for name, field, texts in values if items else ():
            is_present = field == INDEX or has_field(items, field, texts)
            self.found[name] = self.found.get(name, False) or is_present


def level_of(name: str, depth: int) -> tuple[int, str]:
    """Return the level of a name in ``depth`` nested lists, and the field at this level; level 0 is the record itself."""
    level = depth
    while level and name.startswith(PARENT):
        level, name = level - 1, name.removeprefix(PARENT)
    return level, name


def record_fields(each: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of a record that are needed to expand its children with these names."""
    levels = [level_of(name, len(each)) for name in names]
    return (each[0], *(field for level, field in levels if not level))


def expand(
    records: pl.DataFrame,
    each: Sequence[str],
    names: Sequence[str],
    *,
    required: Collection[str] = (),
    required_lists: Collection[str] = (),
) -> Children:
    """Return the children of some records.

    ``records``: the fields that `record_fields` names, and `LIST`, `POSITION`, `ROW_HASH` and `ORDER`. ``each``: the field with
    the list, and the fields with the lists within its items. ``names``: the wanted names. ``required``: some of the ``names``.
    ``required_lists``: some lists within items. `Children.found` states for each required name and list whether an item has it.
    """
    wanted = [(name, *level_of(name, len(each))) for name in dict.fromkeys(names)]
    faults: list[ChildFault] = []
    presence = _Presence(required=required, required_lists=required_lists)
    level = records.select(
        *(column_named(field).alias(name) for name, depth, field in wanted if not depth),
        pl.col(LIST),
        position_text(records[POSITION]).alias(POSITION),
        pl.col(ROW_HASH),
        pl.col(ORDER).alias(RECORD),
        pl.lit("").alias(PATH),
    )
    for depth, field in enumerate(each, start=1):
        fields = {name: found for name, at, found in wanted if at == depth}
        level = _expand_level(level, field, fields, each[depth:], faults, presence=presence)
    frame = level.drop(LIST).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(ORDER),
        pl.concat_str(POSITION, pl.lit(CHILD_OF), PATH).alias(POSITION),
    )
    return Children(frame=frame, faults=tuple(faults), found=presence.found)


def _expand_level(
    level: pl.DataFrame,
    field: str,
    wanted: dict[str, str],
    below: Sequence[str],
    faults: list[ChildFault],
    *,
    presence: _Presence,
) -> pl.DataFrame:
    """Return the items of the lists of one level. ``wanted``: the items' fields by name. ``below``: lists of deeper levels."""
    items: list[msgspec.Raw] = []
    counts: list[int] = []
    problems: dict[int, str] = {}
    for row, text in enumerate(level[LIST]):
        found, problem = _items(text)
        counts.append(len(found))
        items += found
        if problem:
            problems[row] = f"'{field}' {problem}"
    faults += _faults(level, problems, field)
    owners = pl.Series(list(chain.from_iterable(map(repeat, range(len(counts)), counts))), dtype=pl.UInt32)
    numbers = pl.Series(INDEX, list(chain.from_iterable(range(1, count + 1) for count in counts)), dtype=pl.Int64)
    number = numbers.cast(pl.String)
    children = level[owners].with_columns(
        pl.concat_str(
            pl.when(pl.col(PATH) != "").then(pl.col(PATH) + ".").otherwise(pl.lit("")),
            pl.lit(f"{field}[") + number + "]",
        ).alias(PATH)
    )
    names = [one for one in wanted.values() if one != INDEX]
    read = read_fields(items, names, below[0] if below else None)
    faults += _faults(children, read.faults, "")
    presence.add(items, read, wanted, below)
    return children.with_columns(*_columns(read, wanted, number)).filter(_usable(read, children.height))


def _faults(level: pl.DataFrame, reasons: Mapping[int, str], field: str) -> Iterator[ChildFault]:
    for row, reason in reasons.items():
        record, path, position = level[row, RECORD], level[row, PATH], level[row, POSITION]
        yield ChildFault(
            record=record, position=f"{position}{CHILD_OF}{path}" if path else "", reason=reason, field=field
        )


def _columns(read: ChildFields, wanted: dict[str, str], number: pl.Series) -> Iterator[pl.Series]:
    yield pl.Series(LIST, read.lists, dtype=pl.String)
    for name, field in wanted.items():
        yield number.alias(name) if field == INDEX else pl.Series(name, read.columns[field], dtype=pl.String)


def _usable(read: ChildFields, height: int) -> pl.Series:
    return pl.Series([row not in read.faults for row in range(height)], dtype=pl.Boolean)


def _items(text: str | None) -> tuple[Sequence[msgspec.Raw], str]:
    """Return the items of a list, and the problem of the list as the end of a sentence; empty if it has no problem."""
    if text is None or text == "null":
        return (), ""
    if text == OBJECT:
        return (), "is an object, and 'each' needs a list."
    try:
        require_depth(text.encode())
        items = _ITEMS.decode(text)
    except RecursionError:
        return (), "is nested too deeply."
    except (msgspec.MsgspecError, ValueError):
        shown = text if len(text) <= 60 else f"{text[:59]}…"
        return (), f"is no JSON list, and 'each' needs one; it is '{shown}'."
    if len(items) > MOST_CHILDREN:
        return (), f"has {len(items)} items; the limit is {MOST_CHILDREN}."
    return items, ""
