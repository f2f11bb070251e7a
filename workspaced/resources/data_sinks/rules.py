"""The members of the request bodies of sinks and entries (contract S1, S3, S7, S9, S10, S14).

They validate the bodies and generate their JSON Schemas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET

from workspaced.core.json_body import MALFORMED, decode, encode
from workspaced.core.json_schema import STRING, TIMESTAMP, TRIMMED, Schema, array, described, ref, string
from workspaced.core.members import (
    Identifier,
    JsonObject,
    Label,
    Member,
    Slot,
    Text,
    body_schema,
    read_given,
    read_members,
)
from workspaced.core.problems import Invalid
from workspaced.core.text import byte_length, has_controls, normalised
from workspaced.core.timestamps import microseconds
from workspaced.resources.data_sinks.values import Change
from workspaced.settings.model import Limits

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)


def key_fault(key: str, limits: Limits) -> str | None:
    """Return why a text (in NFC) can't be a key, as the end of a sentence; None if it can (contract S7).

    "." and ".." are rejected because clients collapse them in URLs.
    """
    if not 1 <= len(key) <= limits.key_length or byte_length(key) > limits.key_bytes:
        return f"must have 1 to {limits.key_length} characters and at most {limits.key_bytes} bytes"
    if key in {".", ".."}:
        return "can't be '.' or '..'"
    if key != key.strip():
        return "may not begin or end with whitespace"
    if has_controls(key):
        return "may not hold control characters"
    return None


def is_data_type(text: str, limits: Limits) -> bool:
    """Whether a text has the form of a data type; any name is permitted (contract S9)."""
    return len(text) <= limits.data_type_length and _DATA_TYPE.fullmatch(text) is not None


class Key(Member):
    """The key of an entry, in NFC."""

    def reject_null(self, slot: Slot, *, required: bool) -> None:
        """Note that the key is missing."""
        del required
        slot.reject("required", "must be a string")

    def _check(self, slot: Slot, value: Any) -> Any:
        if not isinstance(value, str):
            return slot.reject("wrong_type", "must be a string")
        key = normalised(value)
        fault = key_fault(key, slot.limits)
        return slot.reject("bad_key", fault) if fault else key

    def _form(self, limits: Any) -> Schema:
        about = f"Unique in its sink, at most {limits.key_bytes} bytes in UTF-8, neither `.` nor `..`."
        schema = string(shortest=1, longest=limits.key_length, pattern=TRIMMED, description=about)
        return {**schema, "not": {"enum": [".", ".."]}}


class Value(Member):
    """The value of an entry, stored byte for byte as it was sent."""

    def _check(self, slot: Slot, value: Any) -> Any:
        if not isinstance(value, str):
            return slot.reject("wrong_type", "must be a string")
        most = slot.limits.value_bytes
        return slot.reject("too_long", f"may have {most} bytes at the most") if byte_length(value) > most else value

    def _form(self, limits: Any) -> Schema:
        about = f"Stored as it is sent; at most {limits.value_bytes} bytes in UTF-8."
        return string(longest=limits.value_bytes, description=about)


class DataType(Member):
    """The data type of an entry."""

    def _check(self, slot: Slot, value: Any) -> Any:
        if not isinstance(value, str):
            return slot.reject("wrong_type", "must be a string")
        if is_data_type(value, slot.limits):
            return value
        must = f"must be a letter and up to {slot.limits.data_type_length - 1} of A-Z a-z 0-9 _ . -"
        return slot.reject("bad_data_type", must)

    def _form(self, limits: Any) -> Schema:
        return string(shortest=1, longest=limits.data_type_length, pattern=f"^{_DATA_TYPE.pattern}$")


class ObservedAt(Member):
    """An instant, as microseconds since 1970 after reading."""

    form = TIMESTAMP

    def _check(self, slot: Slot, value: Any) -> Any:
        try:
            return microseconds(value)
        except (TypeError, ValueError, OverflowError):
            return slot.reject("bad_timestamp", "must be an RFC 3339 date-time with an offset")


_Key: TypeAlias = Annotated[str, Key()]
_Value: TypeAlias = Annotated[str | None, Value()]
_DataType: TypeAlias = Annotated[
    str, DataType(description="An open vocabulary: scalar, text, boolean, date, datetime, vector, matrix, json, url…")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataSinkEntry:
    """A create body of an entry."""

    data_type: _DataType
    key: _Key
    value: _Value = None
    id: Annotated[str | None, Identifier()] = None

    def as_change(self) -> Change:
        """Return the entry as an item of a mass update."""
        return Change(self.key, self.value, self.data_type, self.id, None, remove=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSinkEntryChanges:
    """An update body of an entry."""

    data_type: _DataType
    value: _Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MassRemoval:
    """An item of a mass update that removes an entry."""

    value: _Value = None
    data_type: Annotated[
        str | None, DataType(description="If absent: scalar for a new entry, else the data type does not change.")
    ] = None
    key: _Key
    id: Annotated[str | None, Identifier(description="The id of a new entry.")] = None
    observed_at: Annotated[
        int | None,
        ObservedAt(description="When the value was true. It does not replace a value that was observed later."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MassSetting(MassRemoval):
    """An item of a mass update that sets a value."""

    value: Annotated[str, Value()]


class IconText(Text):
    """A string of an icon. Its schema has no length, because the icon as a whole is limited."""

    def _form(self, _limits: Any) -> Schema:
        return STRING


_IconText: TypeAlias = Annotated[str | None, IconText(longest="icon_bytes")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkIcon:
    """The members of an icon."""

    source: _IconText = None
    name: _IconText = None
    color: _IconText = None
    metadata: Annotated[dict[str, Any] | None, JsonObject()] = None


class IconMember(Member):
    """An icon, as compact JSON; sent as an object, or as a string with JSON (contract S3)."""

    def _check(self, slot: Slot, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = decode(value.encode())
            except (Invalid, *MALFORMED):
                return slot.reject("wrong_type", "must be an icon object, or a string with an icon object as JSON")
        child = slot.fields.child(slot.name, value)
        if not isinstance(value, dict):
            return UNSET
        icon = read_given(SinkIcon, child, slot.limits)
        child.close()
        text = encode({name: part for name, part in icon.items() if part is not None and part is not UNSET}).decode()
        if byte_length(text) > slot.limits.icon_bytes:
            slot.reject("too_long", f"may have {slot.limits.icon_bytes} bytes as JSON at the most")
        return text

    def _form(self, limits: Any) -> Schema:
        about = f"At most {limits.icon_bytes} bytes as JSON. A string that holds such JSON is accepted, too."
        return described(body_schema(SinkIcon, limits), about)


class Entries(Member):
    """A list of new entries with different keys."""

    def _check(self, slot: Slot, value: Any) -> Any:
        most = slot.limits.new_sink_entries
        if not isinstance(value, list):
            return slot.reject("wrong_type", "must be a list of entries")
        if len(value) > most:
            return slot.reject("too_many_items", f"may have {most} items at the most")
        entries: list[NewDataSinkEntry] = []
        keys: set[str] = set()
        for index, item in enumerate(value):
            child = slot.fields.child(f"{slot.name}/{index}", item)
            entry = read_members(NewDataSinkEntry, child, slot.limits)
            if entry.key in keys:
                child.mistake("key", "duplicate_key", "is the key of an earlier entry of this request")
            elif entry.key:
                keys.add(entry.key)
            child.close()
            entries.append(entry)
        return tuple(entries)

    def _form(self, limits: Any) -> Schema:
        return array(ref("NewDataSinkEntry"), most=limits.new_sink_entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSinkChanges:
    """An update body of a sink; create bodies have the same members. ``icon`` is JSON."""

    label: Annotated[str, Label(longest="label_length", description="Its name; need not be unique.")]
    description: Annotated[str | None, Text(longest="description_length")] = None
    tags: Annotated[str | None, Text(longest="tags_length", description="Separated by commas.")] = None
    icon: Annotated[str | None, IconMember()] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataSink(DataSinkChanges):
    """A create body of a sink."""

    id: Annotated[str | None, Identifier()] = None
    entries: Annotated[tuple[NewDataSinkEntry, ...], Entries()] = ()


def request_schemas(limits: Limits) -> dict[str, Schema]:
    """Return the schemas of bodies, with the rules of mass updates that types can't express."""
    setting = body_schema(MassSetting, limits)
    setting["properties"]["delete"] = {"anyOf": [{"const": False}, {"type": "null"}]}
    removal = body_schema(MassRemoval, limits)
    removal["properties"]["delete"] = {"const": True}
    removal["required"].append("delete")
    keyed = {name: schema for name, schema in setting["properties"].items() if name != "key"}
    bulk = array(ref("MassItem"), least=1, most=limits.bulk_items)
    return {
        "NewDataSink": body_schema(NewDataSink, limits),
        "DataSinkChanges": body_schema(DataSinkChanges, limits, changes=True),
        "NewDataSinkEntry": body_schema(NewDataSinkEntry, limits),
        "DataSinkEntryChanges": body_schema(DataSinkEntryChanges, limits, changes=True),
        "MassItem": {"anyOf": [setting, removal]},
        "MassSingle": {**setting, "not": {"required": ["entries"]}},
        "MassBulk": {
            "type": "object",
            "properties": {"entries": bulk},
            "required": ["entries"],
            "not": {"required": ["key"]},
        },
        "Mass": {"anyOf": [ref("MassSingle"), bulk, ref("MassBulk")]},
        "KeyedValue": {
            "type": "object",
            "properties": keyed,
            "required": ["value"],
            "not": {"anyOf": [{"required": ["entries"]}, {"required": ["key"]}]},
        },
    }
