"""The schema of a Parquet file, rewritten so that polars reads it exactly. Performs no I/O.

polars rejects a whole file because of one unknown annotation, loses instants of INT96 after the year 2262, and panics at a
repeated field without an annotation. So the elements of each column are replaced by elements that polars reads correctly from
the same bytes. Each leaf of a column gets a `Leaf`, which says how its text is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import asdict

from connectors.formats.columnar.text import TYPED, Leaf
from connectors.formats.columnar.thrift_compact import BINARY, I32, STRUCT, TRUE, Fields

_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 1, 2, 3, 4, 5, 6, 7, 8, 10
_INT64, _INT96, _BYTE_ARRAY, _FIXED = 2, 3, 6, 7
_REQUIRED, _REPEATED = 0, 2
_INT96_BYTES = 12
_DECIMAL_DIGITS, _DECIMAL_BYTES = 38, 16
_DEPTH = 60

_LISTS, _LIST_CONVERTED, _LIST_LOGICAL = {1, 2, 3}, 3, 3
_DECIMAL = 5
_TIMESTAMPS: Mapping[int, int] = {9: 1, 10: 2}
"""By converted type (TIMESTAMP_MILLIS and TIMESTAMP_MICROS, which are instants in UTC): the unit in `LogicalType`."""
_LOGICAL_TIMESTAMP, _LOGICAL_UUID, _LOGICAL_VARIANT = 8, 14, 16
_LOGICAL_KNOWN = range(1, 17)
_NO_TEXT_CONVERTED = {20: "BSON", 21: "INTERVAL"}
_NO_TEXT_LOGICAL = {13: "BSON", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY"}
_TEXTS_CONVERTED, _TEXTS_LOGICAL = {0, 4, 19}, {1, 4, 12}
"""The types for text, ENUM and JSON, which are stored as UTF-8."""


class BadSchema(Exception):
    """The elements of a schema do not form a tree."""


class _Node(msgspec.Struct, kw_only=True):
    elements: list[Fields]
    paths: list[tuple[bytes, ...]]
    leaves: list[Leaf]
    refusal: str = ""
    flat: bool = True


class ParquetColumn(_Node, kw_only=True):
    """A column: its name, its elements for polars, the paths of the leaves in them, and the kinds of the leaves.

    ``refusal``: the kind of its values if they have no text form; else empty. ``first``: the number of its first leaf
    in the file. ``flat``: each row has exactly one value of each leaf. ``may_be``: the kind of `Leaf` that Arrow's writers
    store as this type (``duration``, ``zone``), or empty.
    """

    name: str
    first: int
    may_be: str


def read_columns(schema: Sequence[Fields]) -> Sequence[ParquetColumn]:
    """Return the columns of a file's schema. ``schema``: its elements, the root first.

    Raises:
        BadSchema: the elements are no tree.
    """
    elements = iter(schema)
    columns: list[ParquetColumn] = []
    leaves = 0
    for _ in range(_number(next(elements, {}), _CHILDREN)):
        node = _node(elements, 0, in_list=False)
        head = node.elements[0]
        name = _name(head).decode("utf-8", "backslashreplace")
        columns.append(ParquetColumn(**asdict(node), name=name, first=leaves, may_be=_may_be(head)))
        leaves += len(node.leaves)
    return columns


def _may_be(element: Fields) -> str:
    if _LOGICAL not in element:
        return "duration" if _number(element, _TYPE, -1) == _INT64 and _number(element, _CONVERTED, -1) < 0 else ""
    logical = element[_LOGICAL][1]
    is_instant = _LOGICAL_TIMESTAMP in logical and logical[_LOGICAL_TIMESTAMP][1].get(1, (0, False))[1]
    return "zone" if is_instant else ""


def numbered(columns: Sequence[ParquetColumn]) -> list[Fields]:
    """Return the elements of a schema with these columns. Their names are their indexes, because a file may repeat a name."""
    elements: list[Fields] = [{_NAME: (BINARY, b"schema"), _CHILDREN: (I32, len(columns))}]
    for index, column in enumerate(columns):
        head, *inner = column.elements
        elements += [{**head, _NAME: (BINARY, str(index).encode())}, *inner]
    return elements


def _node(elements: Iterator[Fields], depth: int, *, in_list: bool) -> _Node:
    element = next(elements, None)
    if element is None or depth > _DEPTH:
        raise BadSchema("its schema is no tree")
    element = {number: element[number] for number in element if number <= _LOGICAL}
    children = _number(element, _CHILDREN)
    node = _group(element, elements, children, depth) if children or _TYPE not in element else _leaf(element)
    if _number(element, _REPETITION) == _REPEATED:
        node.flat = False
        return node if in_list else _as_list(node)
    return node


def _group(element: Fields, elements: Iterator[Fields], count: int, depth: int) -> _Node:
    logical = _logical(element)
    annotated = _number(element, _CONVERTED, -1) in _LISTS or logical in {2, 3}
    children = [_node(elements, depth + 1, in_list=annotated and count == 1) for _ in range(count)]
    if annotated:
        _remove_annotation(element)
        if count == 1 and _number(children[0].elements[0], _REPETITION) == _REPEATED:
            _annotate_list(element)
    own = _name(element)
    refusals = [child.refusal for child in children if child.refusal]
    return _Node(
        elements=[element, *(one for child in children for one in child.elements)],
        paths=[(own, *path) for child in children for path in child.paths],
        leaves=[leaf for child in children for leaf in child.leaves],
        refusal="VARIANT" if logical == _LOGICAL_VARIANT else (refusals or [""])[0],
        flat=all(child.flat for child in children),
    )


def _as_list(node: _Node) -> _Node:
    """Return a repeated field as a list, inside a new group that adds no definition level.

    By the rules of the format, a repeated field named ``array`` is the list item itself, even if it is a group of one field.
    """
    own = _name(node.elements[0])
    outer: Fields = {_REPETITION: (I32, _REQUIRED), _NAME: (BINARY, own), _CHILDREN: (I32, 1)}
    _annotate_list(outer)
    item: Fields = {**node.elements[0], _NAME: (BINARY, b"array")}
    return _Node(
        elements=[outer, item, *node.elements[1:]],
        paths=[(own, b"array", *path[1:]) for path in node.paths],
        leaves=node.leaves,
        refusal=node.refusal,
        flat=False,
    )


def _leaf(element: Fields) -> _Node:
    kind, refusal = _leaf_kind(element)
    return _Node(elements=[element], paths=[(_name(element),)], leaves=[kind], refusal=refusal)


def _leaf_kind(element: Fields) -> tuple[Leaf, str]:
    """Return the `Leaf` of an element, and the kind of its values if they have no text form. May change the element."""
    physical, converted, logical = _number(element, _TYPE), _number(element, _CONVERTED, -1), _logical(element)
    refusal = _NO_TEXT_LOGICAL.get(logical, "") or _NO_TEXT_CONVERTED.get(converted, "")
    if not refusal and _LOGICAL in element and logical not in _LOGICAL_KNOWN:
        refusal = "a logical type that is not known"
    if refusal:
        _remove_annotation(element)
        return TYPED, refusal
    if physical == _INT96:
        _remove_annotation(element)
        element[_TYPE], element[_LENGTH] = (I32, _FIXED), (I32, _INT96_BYTES)
        return Leaf("int96"), ""
    if converted in _TIMESTAMPS and _LOGICAL not in element:
        unit: Fields = {_TIMESTAMPS[converted]: (STRUCT, {})}
        element[_LOGICAL] = (STRUCT, {_LOGICAL_TIMESTAMP: (STRUCT, {1: (TRUE, True), 2: (STRUCT, unit)})})
    if physical not in {_BYTE_ARRAY, _FIXED}:
        return TYPED, ""
    return _bytes_kind(element, converted, logical), ""


def _bytes_kind(element: Fields, converted: int, logical: int) -> Leaf:
    if logical in _TEXTS_LOGICAL or converted in _TEXTS_CONVERTED:
        _remove_annotation(element)
        element[_CONVERTED], element[_LOGICAL] = (I32, 0), (STRUCT, {1: (STRUCT, {})})
        return TYPED
    if logical == _LOGICAL_UUID:
        _remove_annotation(element)
        return Leaf("uuid")
    if _DECIMAL in {converted, logical}:
        own: Fields = element[_LOGICAL][1][_DECIMAL][1] if logical == _DECIMAL else {}
        scale = own[1][1] if 1 in own else _number(element, _SCALE)
        precision = own[2][1] if 2 in own else _number(element, _PRECISION)
        if precision <= _DECIMAL_DIGITS and _number(element, _LENGTH) <= _DECIMAL_BYTES:
            return TYPED
        _remove_annotation(element)
        return Leaf("decimal", str(scale))
    return TYPED


def _remove_annotation(element: Fields) -> None:
    """Remove all annotations of an element, except the physical type of its values."""
    for number in (_CONVERTED, _SCALE, _PRECISION, _LOGICAL):
        element.pop(number, None)


def _annotate_list(element: Fields) -> None:
    element[_CONVERTED], element[_LOGICAL] = (I32, _LIST_CONVERTED), (STRUCT, {_LIST_LOGICAL: (STRUCT, {})})


def _logical(element: Fields) -> int:
    """Return the number of an element's logical type; 0 if it has none."""
    return next(iter(element[_LOGICAL][1]), 0) if _LOGICAL in element else 0


def _number(element: Fields, number: int, default: int = 0) -> int:
    return int(element[number][1]) if number in element else default


def _name(element: Fields) -> bytes:
    return bytes(element[_NAME][1])
