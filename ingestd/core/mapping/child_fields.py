"""The fields of the items of a JSON list, as exact text.

The fields have the same form as in a record of a JSON file: nested names are joined by dots, numbers keep their characters, and
a list is its JSON text. If only simple fields are needed, one call decodes all items. Otherwise each item is read alone.

If an object repeats a name, a decoder keeps the last member without an error. So repeated names are searched separately. An
item is rejected if it has a needed name twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

CHILD = "child"
"""The name of the field that holds the item itself: its string, the characters of its number, or its JSON text."""

OBJECT = "{"
"""The marker that replaces the text of a list if an item or a record has an object where a list is expected."""

_VALUES = msgspec.json.Decoder(list[Any], float_hook=str)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_PAIRS = json.JSONDecoder(object_pairs_hook=list, parse_int=str, parse_float=str, strict=False)
_TEXT = msgspec.json.Decoder(str)
_MINUS_ZERO = re.compile(rb"-0(?![.eE\d])")
_ESCAPED_PAIR = re.compile(rb"\\u00(?:2[02]|3[aA])")
_COLONS = (b'":', b" :", b"\t:", b"\n:", b"\r:")
_NULL = msgspec.Raw(b"null")
_NONE = type(None)
_PLAIN = frozenset({str, int, bool, _NONE})


class ChildUnreadable(ValueError):
    """An item that can't be used; the sentence states why."""


class ChildFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of some items. ``columns``: by field, a value for each item. ``lists``: the text of each item's nested list.

    ``faults``: the sentences about unreadable items, by the index of the item.
    """

    columns: Mapping[str, Sequence[str | None]]
    lists: Sequence[str | None]
    faults: Mapping[int, str] = msgspec.field(default_factory=dict)


def read_fields(items: Sequence[msgspec.Raw], names: Sequence[str], nested: str | None) -> ChildFields:
    """Return the fields ``names`` of some items, and the lists in their field ``nested``."""
    if not names and nested is None:
        return ChildFields(columns={}, lists=[None] * len(items))
    return _read_together(items, names, nested) or _read_alone(items, names, nested)


def has_field(items: Sequence[msgspec.Raw], name: str, values: Iterable[str | None]) -> bool:
    """Return whether at least one item has the field ``name``, also with null. ``values``: the read values of the field."""
    return (
        name == CHILD
        or any(value is not None for value in values)
        or any(_has_member(bytes(one), name) for one in items)
    )


def _has_member(item: bytes, name: str) -> bool:
    try:
        return any(member == name and value[:1] != b"{" for member, value in _members(item, ""))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False  # the item is rejected


def _read_together(items: Sequence[msgspec.Raw], names: Sequence[str], nested: str | None) -> ChildFields | None:
    """Return the fields of all items with one decoding; None if a value is not simple."""
    fields = names if nested is None else (*names, nested)
    joined = b"[%b]" % b",".join(map(bytes, items))
    is_child = list(fields) == [CHILD]
    are_simple = is_child or not (CHILD in fields or nested in names or any("." in name for name in fields))
    if not are_simple or _MINUS_ZERO.search(joined):
        return None
    try:
        if is_child:
            text = _column(_VALUES.decode(joined))
            return None if text is None else ChildFields(columns={CHILD: text}, lists=[None] * len(items))
        children = _decoder_for(tuple(names), nested).decode(joined)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    columns: dict[str, Sequence[str | None]] = {}
    counts: dict[str, int] = {}
    for at, name in enumerate(names):
        given = list(map(attrgetter(f"f{at}"), children))
        counts[name] = len(given) - given.count(UNSET)
        values = _column(given)
        if values is None:
            return None
        columns[name] = values
    if nested is not None:
        counts[nested] = sum(child.nested is not _NULL for child in children)
    if _may_repeat(joined, counts):
        return None
    lists = [_list_text(bytes(child.nested)) for child in children] if nested is not None else [None] * len(items)
    return ChildFields(columns=columns, lists=lists)


@lru_cache(maxsize=64)
def _decoder_for(names: tuple[str, ...], nested: str | None) -> msgspec.json.Decoder[Any]:
    fields: list[tuple[str, Any, Any]] = [(f"f{at}", Any, UNSET) for at in range(len(names))]
    rename = {f"f{at}": name for at, name in enumerate(names)}
    if nested is not None:
        fields.append(("nested", msgspec.Raw, _NULL))
        rename["nested"] = nested
    structure = msgspec.defstruct("ChildObject", fields, rename=rename, gc=False)
    return msgspec.json.Decoder(list[structure], float_hook=str)  # type: ignore[valid-type]


def _may_repeat(text: bytes, counts: Mapping[str, int]) -> bool:
    """Return whether an item may repeat a name. ``counts``: for each name, the number of items that have it."""
    # Without a backslash, each member has its name unescaped between quotes. For most texts this fast comparison is enough.
    if b"\\" not in text and all(text.count(b'"%b"' % name.encode()) == count for name, count in counts.items()):
        return False
    return _lost_members(text, _OBJECTS.decode(text))


def _lost_members(text: bytes, decoded: Any) -> bool:
    """Return whether a decoder has dropped members with repeated names. Objects within members are not decoded.

    A member has a colon after a quote or white space. If the encoded result has fewer of these pairs, a member was dropped. A
    name that contains such a pair keeps it, unless the text writes a character of the pair as an escape.
    """
    encoded = msgspec.json.encode(decoded)
    counts = ([one.count(pair) for pair in _COLONS] for one in (text, encoded))
    return sum(next(counts)) != sum(next(counts)) or _ESCAPED_PAIR.search(text) is not None


def _column(values: list[Any]) -> Sequence[str | None] | None:
    """Return decoded values as text; None if one of them is a list or an object."""
    types = set(map(type, values))
    if UnsetType in types:
        values = [None if value is UNSET else value for value in values]
        types = types - {UnsetType} | {_NONE}
    if not types <= _PLAIN:
        return None
    if types <= {str, _NONE}:
        return values
    return [value if value is None or isinstance(value, str) else _plain(value) for value in values]


def _plain(value: int) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _read_alone(items: Sequence[msgspec.Raw], names: Sequence[str], nested: str | None) -> ChildFields:
    found: list[dict[str, str | None]] = []
    lists: list[str | None] = []
    faults: dict[int, str] = {}
    wanted = {*names}
    for row, item in enumerate(items):
        try:
            fields, inner = _read_one(bytes(item), wanted, nested)
        except ChildUnreadable as error:
            fields, inner, faults[row] = {}, None, str(error)
        found.append(fields)
        lists.append(inner)
    return ChildFields(columns={name: [one.get(name) for one in found] for name in names}, lists=lists, faults=faults)


def _read_one(text: bytes, wanted: set[str], nested: str | None) -> tuple[dict[str, str | None], str | None]:
    """Return the wanted fields of an item, and the text of its list ``nested``."""
    fields: dict[str, str | None] = {}
    inner: str | None = None
    try:
        for name, value in _members(text, "", needed=wanted if nested is None else {*wanted, nested}):
            if name == nested:
                inner = _list_text(value)
            if name not in wanted or value[:1] == b"{":
                continue
            if name in fields:
                raise ChildUnreadable(
                    f"The child has two fields with the name '{name}' after nested names are joined by dots."
                )
            fields[name] = _value(value)
        if CHILD in wanted:
            fields[CHILD] = _value(text)
    except RecursionError:
        raise ChildUnreadable("The child is nested too deeply.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ChildUnreadable(f"The child can't be read: {error}.") from None
    return fields, _list_text(text) if nested == CHILD else inner


def _members(text: bytes, prefix: str, needed: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield the members of an object, and of the objects within, with their joined names.

    Raises:
        ChildUnreadable: the object repeats the name of a ``needed`` field.
    """
    if text[:1] == b"{":
        members = _OBJECT.decode(text)
        if needed and _lost_members(text, members):
            _require_once(text, prefix, needed)
        for name, raw in members.items():
            yield prefix + name, bytes(raw)
            yield from _members(bytes(raw), f"{prefix}{name}.", needed)


def _require_once(text: bytes, prefix: str, needed: Collection[str]) -> None:
    try:
        names = Counter(prefix + name for name, _ in _PAIRS.decode(text.decode()))
    except ValueError as error:
        raise ChildUnreadable(f"The child can't be read: {error}.") from None
    for name in (name for name, count in names.items() if count > 1):
        if any(one == name or one.startswith(f"{name}.") for one in needed):
            raise ChildUnreadable(f"The child has two fields with the name '{name}'.")


def _value(text: bytes) -> str | None:
    if text[:1] == b'"':
        return _TEXT.decode(text)
    return None if text == b"null" else text.decode()


def _list_text(text: bytes) -> str | None:
    """Return the text of a list, also of a list inside a JSON string; `OBJECT` if the value is an object."""
    return OBJECT if text[:1] == b"{" else _value(text)
