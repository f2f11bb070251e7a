"""The request bodies of sinks and entries, and their members (contract S1, S3, S7, S9, S10, S14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import ValidatorFunctionWrapHandler

from workspaced.core.bodies import Body, Nested, body_schema
from workspaced.core.json_body import MALFORMED, decode, encode
from workspaced.core.json_schema import STRING, TIMESTAMP, TRIMMED, Schema, array, described, ref, string
from workspaced.core.members import Flag, Identifier, Info, JsonObject, Label, Member, Text, rejected, string_of
from workspaced.core.problems import Invalid
from workspaced.core.text import byte_length, has_controls, normalised
from workspaced.core.timestamps import microseconds
from workspaced.resources.data_sinks.origins import OriginMember, Origins, SingleOrigin
from workspaced.resources.data_sinks.values import Change
from workspaced.settings.model import Limits

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)


def key_fault(key: str, limits: Limits) -> str | None:
    """Return why a text (in NFC) can't be a key, as the end of a sentence; None if it can be a key (contract S7).

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

    def absent(self, *, null: bool) -> tuple[str, str]:
        """Return the mistake for a missing key."""
        del null
        return "required", "must be a string"

    def _check(self, value: Any, info: Info) -> Any:
        key = normalised(string_of(value))
        if fault := key_fault(key, info.context.limits):
            raise rejected("bad_key", fault)
        return key

    def _form(self, limits: Any) -> Schema:
        about = f"Unique in its sink, at most {limits.key_bytes} bytes in UTF-8, neither `.` nor `..`."
        schema = string(shortest=1, longest=limits.key_length, pattern=TRIMMED, description=about)
        return {**schema, "not": {"enum": [".", ".."]}}


class Value(Member):
    """The value of an entry, stored byte for byte as it was sent."""

    def _check(self, value: Any, info: Info) -> Any:
        if byte_length(string_of(value)) > info.context.limits.value_bytes:
            raise rejected("too_long", f"may have {info.context.limits.value_bytes} bytes at the most")
        return value

    def _form(self, limits: Any) -> Schema:
        about = f"Stored as it is sent; at most {limits.value_bytes} bytes in UTF-8."
        return string(longest=limits.value_bytes, description=about)


class DataType(Member):
    """The data type of an entry."""

    def _check(self, value: Any, info: Info) -> Any:
        if is_data_type(string_of(value), info.context.limits):
            return value
        must = f"must be a letter and up to {info.context.limits.data_type_length - 1} of A-Z a-z 0-9 _ . -"
        raise rejected("bad_data_type", must)

    def _form(self, limits: Any) -> Schema:
        return string(shortest=1, longest=limits.data_type_length, pattern=f"^{_DATA_TYPE.pattern}$")


class ObservedAt(Member):
    """An instant, which is read as microseconds since 1970."""

    form = TIMESTAMP

    def _check(self, value: Any, _info: Info) -> Any:
        try:
            return microseconds(value)
        except (TypeError, ValueError):
            raise rejected("bad_timestamp", "must be an RFC 3339 date-time with an offset") from None


_Key: TypeAlias = Annotated[str, Key()]
_Value: TypeAlias = Annotated[str | None, Value()]
_Origin: TypeAlias = Annotated[
    SingleOrigin | None, OriginMember(body=SingleOrigin, description="Where the value comes from.")
]
_DataType: TypeAlias = Annotated[
    str, DataType(description="An open vocabulary: scalar, text, boolean, date, datetime, vector, matrix, json, url…")
]


class NewDataSinkEntry(Body):
    """A new entry in the create body of a sink."""

    data_type: _DataType
    key: _Key
    value: _Value = None
    id: Annotated[str | None, Identifier()] = None

    def as_change(self) -> Change:
        """Return the entry as an item of a mass update."""
        return Change(self.key, self.value, self.data_type, self.id, None, remove=False)


class SingleDataSinkEntry(NewDataSinkEntry):
    """The create body of an entry."""

    origin: _Origin = None


class DataSinkEntryChanges(Body):
    """An update body of an entry."""

    is_update = True

    data_type: _DataType
    value: _Value = None


class MassRemoval(Body):
    """An item of a mass update that removes an entry."""

    delete: Annotated[bool, Flag()] = False
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


class MassSetting(MassRemoval):
    """An item of a mass update that sets a value."""

    value: Annotated[str, Value()]


class SingleSetting(MassSetting):
    """The single form of a mass update."""

    origin: _Origin = None


class IconText(Text):
    """A text member of an icon. Its schema has no maximum length, because the size of the whole icon is limited."""

    def _form(self, _limits: Any) -> Schema:
        return STRING


_IconText: TypeAlias = Annotated[str | None, IconText(longest="icon_bytes")]


class SinkIcon(Body):
    """The members of an icon."""

    source: _IconText = None
    name: _IconText = None
    color: _IconText = None
    metadata: Annotated[dict[str, Any] | None, JsonObject(deepest="metadata_depth")] = None


class IconMember(Nested):
    """An icon, stored as compact JSON. A request sends an object, or a string of JSON (contract S3)."""

    def parsed(self, value: Any) -> Any:
        """Return the decoded value of a string of JSON; any other value is returned as it is."""
        try:
            return decode(value.encode()) if isinstance(value, str) else value
        except (Invalid, *MALFORMED):
            return value

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        parsed = self.parsed(value)
        if isinstance(parsed, str):
            raise rejected("wrong_type", "must be an icon object, or a string with an icon object as JSON")
        icon = {name: part for name, part in check(parsed).given().items() if part is not None}
        text = encode(icon).decode()
        if byte_length(text) > info.context.limits.icon_bytes:
            raise rejected("too_long", f"may have {info.context.limits.icon_bytes} bytes as JSON at the most")
        return text

    def _form(self, limits: Any) -> Schema:
        about = f"At most {limits.icon_bytes} bytes as JSON. A string that holds such JSON is accepted, too."
        return described(body_schema(SinkIcon, limits), about)


class Entries(Nested):
    """A list of new entries with different keys."""

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        most = info.context.limits.new_sink_entries
        if not isinstance(value, list):
            raise rejected("wrong_type", "must be a list of entries")
        if len(value) > most:
            raise rejected("too_many_items", f"may have {most} items at the most")
        repeated = rejected("duplicate_key", "is the key of an earlier entry of this request")
        keys: set[str] = set()
        items = []
        for item in value:
            key = item.get("key") if isinstance(item, dict) else None
            key = normalised(key) if isinstance(key, str) else ""
            is_repeated = key in keys and not key_fault(key, info.context.limits)
            items.append({**item, "key": repeated} if is_repeated else item)
            keys.add(key)
        return check(items)

    def _form(self, limits: Any) -> Schema:
        return array(ref("NewDataSinkEntry"), most=limits.new_sink_entries)


class DataSinkChanges(Body):
    """An update body of a sink; create bodies have the same members. ``icon`` is read as JSON text."""

    is_update = True

    label: Annotated[str, Label(longest="label_length", description="Its name; need not be unique.")]
    description: Annotated[str | None, Text(longest="description_length")] = None
    tags: Annotated[str | None, Text(longest="tags_length", description="Separated by commas.")] = None
    icon: Annotated[str | None, IconMember(body=SinkIcon)] = None
    protect_fed_entries: Annotated[
        bool,
        Flag(description="true: writes without an origin do not change entries with an origin (an extension)."),
    ] = False


class NewDataSink(Origins, DataSinkChanges):
    """A create body of a sink."""

    is_update = False

    id: Annotated[str | None, Identifier()] = None
    entries: Annotated[Sequence[NewDataSinkEntry], Entries(body=NewDataSinkEntry, is_list=True)] = ()
