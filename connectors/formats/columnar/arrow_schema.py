"""The schema of Arrow: what each column holds, and where its parts are in a batch. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count

import msgspec
import polars as pl

from connectors.formats.columnar.flatbuffer import NotFlatbuffer, Table
from connectors.formats.columnar.text import TYPED, Leaf

_FIELDS = 1
_NAME, _TYPE, _TYPE_TABLE, _DICTIONARY, _CHILDREN, _METADATA = 0, 2, 3, 4, 5, 6
_NULL, _INTERVAL, _TIMESTAMP, _UNION, _RUNS, _DECIMAL, _DURATION = 1, 11, 10, 14, 22, 7, 18
_FIXED_BYTES = 15
_UNITS = ("s", "ms", "us", "ns")
_DECIMAL_BITS = 128
_DEPTH = 60
_MOST_FIELDS = 100_000

_BUFFERS = {
    **dict.fromkeys((2, 3, 6, 7, 8, 9, 10, 11, 15, 18), 2),
    **dict.fromkeys((4, 5, 19, 20), 3),
    **dict.fromkeys((12, 17, 21), 2),
    **dict.fromkeys((25, 26), 3),
    **dict.fromkeys((13, 16), 1),
    **dict.fromkeys((23, 24), 2),
    _NULL: 0,
    _RUNS: 0,
}
"""By type: the number of its buffers, without those of its children. Each batch states the additional buffers of views."""
_VIEWS = (23, 24)
_NO_TEXT = {
    _INTERVAL: "intervals",
    _UNION: "a union",
    _RUNS: "runs (run-end encoding)",
    25: "list views",
    26: "list views",
}


class ArrowColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column: the kind of values of its leaves, and the nodes, buffers and views that it has in each batch.

    ``refusal``: the kind of values that can't be read; empty: the column can be read. ``dictionaries``: the numbers of the
    dictionaries that hold its values.
    """

    name: str
    leaves: Sequence[Leaf]
    refusal: str
    nodes: int
    buffers: int
    views: int
    dictionaries: frozenset[int]


def read_arrow_columns(schema: Table) -> Sequence[ArrowColumn]:
    """Return the columns of a schema.

    Raises:
        NotFlatbuffer: the schema is damaged.
    """
    number = count()
    return [_column(field, 0, number) for field in schema.tables(_FIELDS)]


def _column(field: Table, depth: int, number: Iterator[int]) -> ArrowColumn:
    """Return a column. ``number`` counts all fields, because many fields of a damaged schema can share a child."""
    if depth > _DEPTH or next(number) > _MOST_FIELDS:
        raise NotFlatbuffer
    kind, own = field.scalar(_TYPE, "<B"), field.table(_TYPE_TABLE)
    dictionary = field.table(_DICTIONARY)
    children = [_column(child, depth + 1, number) for child in field.tables(_CHILDREN)]
    found = {one for child in children for one in child.dictionaries}
    refusals = [child.refusal for child in children if child.refusal]
    refusal = refusals[0] if refusals else _NO_TEXT.get(kind, "")
    if kind == _DECIMAL and own is not None and own.scalar(2, "<i", _DECIMAL_BITS) > _DECIMAL_BITS:
        refusal = "decimals of more than 38 digits"
    if kind == _TIMESTAMP and own is not None and not _is_zone(zone := _zone(own)):
        refusal = f"instants of the time zone {zone}, which is not known"
    if kind not in _BUFFERS and kind != _UNION:
        refusal = "a type that is not known"
    nodes, buffers, views = 1, _BUFFERS.get(kind, 0), int(kind in _VIEWS)
    if kind == _UNION and own is not None:
        buffers = 1 + own.scalar(0, "<h")  # a dense union has offsets, too
    if dictionary is not None:
        buffers, views = 2, 0  # the indexes; the children are in the dictionary
        found.add(dictionary.scalar(0, "<q"))
    else:
        nodes += sum(child.nodes for child in children)
        buffers += sum(child.buffers for child in children)
        views += sum(child.views for child in children)
    return ArrowColumn(
        name=field.text(_NAME).decode("utf-8", "backslashreplace"),
        leaves=[leaf for child in children for leaf in child.leaves] if children else [_leaf(field, kind)],
        refusal=refusal,
        nodes=nodes,
        buffers=buffers,
        views=views,
        dictionaries=frozenset(found),
    )


def _leaf(field: Table, kind: int) -> Leaf:
    pairs = {pair.text(0): pair.text(1) for pair in field.tables(_METADATA)}
    if kind == _FIXED_BYTES and pairs.get(b"ARROW:extension:name") == b"arrow.uuid":
        return Leaf("uuid")
    return TYPED


def stored_leaves(schema: Table) -> dict[str, Leaf]:
    """Return the leaves of a Parquet file's columns with time zones or durations, which only its Arrow schema states.

    Raises:
        NotFlatbuffer: the schema is damaged.
    """
    leaves: dict[str, Leaf] = {}
    for field in schema.tables(_FIELDS):
        kind, own = field.scalar(_TYPE, "<B"), field.table(_TYPE_TABLE)
        name = field.text(_NAME).decode("utf-8", "backslashreplace")
        if own is not None and kind == _DURATION:
            leaves[name] = Leaf("duration", _UNITS[own.scalar(0, "<h", 1) & 3])
        elif own is not None and kind == _TIMESTAMP and _is_zone(zone := _zone(own)):
            leaves[name] = Leaf("zone", zone)
    return leaves


def _zone(timestamp: Table) -> str:
    return timestamp.text(1).decode("utf-8", "backslashreplace")


@cache
def _is_zone(name: str) -> bool:
    """Return whether polars knows a time zone. The empty zone is valid: the values have no zone, or are in UTC."""
    try:
        pl.Series([0], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(name)
    except pl.exceptions.ComputeError:
        return False
    return True
