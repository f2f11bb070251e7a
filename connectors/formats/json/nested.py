"""The reader of nested records in JSON: objects in members of one name, at any depth, also inside other records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from connectors.formats.json.reader import Items
from connectors.formats.members import MemberNames
from connectors.formats.ndjson.exact import LineUnreadable, NameRepeated, parse_record, require_unique_names
from connectors.formats.nested import NestedItem, nested_records
from connectors.formats.record_chunks import make_chunks
from connectors.formats.text import DETECT, open_text
from connectors.formats.text.lines import shown_text
from ingestd.sdk import SourceBroken, require_depth
from ingestd.sdk.formats.record_chunk import RecordChunk

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODER = msgspec.json.Encoder()


def read_nested(
    file: BinaryIO, name: str, *, member: str, item_id: str = "", encoding: str = DETECT
) -> Iterator[RecordChunk]:
    """Yield the objects in members called ``member`` as records, at least one chunk. See `connectors.formats.nested`.

    With ``item_id``, an outer object that has this field is a record, too: the top of a tree. This object must be the
    document or an item of the document's array, or have a member called ``member``. ``member`` is ``*`` for all objects
    with the field ``item_id``. Positions are the numbers of records from 1, in the order in which they begin. Memory holds
    the whole document or, if it is an array, one item at a time.

    Raises:
        SourceBroken: a document that is not empty has no such member, or is truncated; see also `nested_records`.
    """
    text = open_text(file, encoding)
    finder = _Finder(member, item_id)
    units = map(finder.trees, Items(text, name, ()))
    for chunk in make_chunks(nested_records((tree for trees in units for tree in trees), name, item_id)):
        yield replace(chunk, facts=text.encoding.facts)
    if finder.names and not finder.matched:
        what = f"object with {item_id!r} (id)" if member == "*" else f"member {member!r} (records)"
        raise SourceBroken(
            f"{name} has no {what} at any depth.{finder.names.sentence(item_id if member == '*' else member)}"
        )


class _Finder:
    """Finds the records in JSON texts. ``names``: the members before the first record; ``matched``: a record was found."""

    def __init__(self, member: str, item_id: str) -> None:
        self._member = member
        self._id = item_id
        self.names = MemberNames()
        self.matched = False

    def trees(self, text: bytes) -> list[NestedItem]:
        """Return the outermost records of a JSON text. A text that can't be read is one record with a fault."""
        try:
            require_depth(text)
            found: list[msgspec.Raw] = []
            if self._id and text.startswith(b"{") and _has(_OBJECT.decode(text), self._id):
                self.matched = self._member == "*"
                found.append(msgspec.Raw(text))
            else:
                self._without_items(msgspec.Raw(text), found)
            require_unique_names(text)
            return [self._item(one) for one in found]
        except (msgspec.DecodeError, UnicodeDecodeError, NameRepeated):
            fault = _fault(text)
        except RecursionError:
            fault = "is nested too deeply"
        self.matched = True
        return [NestedItem(fields={"text": shown_text(text)}, fault=fault)]

    def _item(self, value: msgspec.Raw) -> NestedItem:
        if _first(value) != "{":
            return NestedItem(fields={"text": shown_text(bytes(value))}, fault="is JSON but not an object")
        inside: list[msgspec.Raw] = []
        own = bytes(self._without_items(value, inside) or b"{}")
        items = [self._item(one) for one in inside]
        try:
            return NestedItem(fields=parse_record(own), items=items)
        except LineUnreadable as error:
            return NestedItem(fields={"text": shown_text(own)}, items=items, fault=str(error))

    def _without_items(self, value: msgspec.Raw, found: list[msgspec.Raw]) -> msgspec.Raw | None:
        """Add the outermost records in ``value`` to ``found``. Return the value without them; None if nothing is left."""
        is_object = _first(value) == "{"
        pairs = list(_OBJECT.decode(value).items()) if is_object else [("", item) for item in _ARRAY.decode(value)]
        if is_object and not self.matched:
            for name, _ in pairs:
                self.names.add(name)
        left = [(name, one, self._left_of(name, one, found)) for name, one in pairs]
        if all(rest is one for _, one, rest in left):
            return value
        kept = [(name, rest) for name, _, rest in left if rest is not None]
        return msgspec.Raw(_ENCODER.encode(dict(kept) if is_object else [rest for _, rest in kept])) if kept else None

    def _left_of(self, name: str, value: msgspec.Raw, found: list[msgspec.Raw]) -> msgspec.Raw | None:
        """Return the value of a member without the records in it; None if nothing is left. Items of an array have no name."""
        first = _first(value)
        if first not in "{[":
            return value
        if name and name == self._member:
            self.matched = True
            found += _ARRAY.decode(value) if first == "[" else [value]
            return None
        if self._id and first == "{" and self._is_item(_OBJECT.decode(value)):
            self.matched = self.matched or self._member == "*"
            found.append(value)
            return None
        return self._without_items(value, found)

    def _is_item(self, members: Mapping[str, msgspec.Raw]) -> bool:
        """Return whether an object that is in no member called ``member`` is a record, because it has the identifier."""
        return (self._member == "*" or self._member in members) and _has(members, self._id)


def _first(value: msgspec.Raw) -> str:
    """Return the first character of a JSON text."""
    return chr(memoryview(value)[0])


def _has(members: Mapping[str, msgspec.Raw], field: str) -> bool:
    """Return whether a record of the members would have the field."""
    if field in members:
        return True
    return any(
        field.startswith(f"{name}.") and _first(raw) == "{" and _has(_OBJECT.decode(raw), field[len(name) + 1 :])
        for name, raw in members.items()
    )


def _fault(text: bytes) -> str:
    """Return why a text can't be read, in the same words as for a single record."""
    try:
        parse_record(text)
    except LineUnreadable as error:
        return str(error)
    return "is not valid JSON"
