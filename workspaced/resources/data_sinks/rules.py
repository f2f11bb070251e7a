"""What sinks and entries may be (contract S1, S3, S7, S9, S10, S14). Pure: bodies in, checked values or every mistake out."""

from __future__ import annotations

import re

from msgspec import UNSET, UnsetType

from workspaced.core.fields import Fields, Text
from workspaced.core.json_body import MALFORMED, decode, encode
from workspaced.core.problems import Invalid
from workspaced.core.text import byte_length, has_controls, normalised
from workspaced.resources.data_sinks.values import EntryChanges, NewEntry, NewSink, SinkChanges
from workspaced.settings.model import Limits

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)


def key_fault(key: str, limits: Limits) -> str | None:
    """Why a text (in NFC) can't be a key, as the end of a sentence; None where it can (contract S7).

    "." and ".." are refused because clients collapse them in URLs.
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
    """Whether a text can be a data type; the vocabulary is open (contract S9)."""
    return len(text) <= limits.data_type_length and _DATA_TYPE.fullmatch(text) is not None


def read_new_sink(body: object, limits: Limits) -> tuple[NewSink, tuple[str, ...]]:
    """The checked body (contract DS5) and the ignored names.

    Raises:
        Invalid: something is wrong; a second entry with a key is pointed at.
    """
    fields = Fields(body)
    label = fields.label(longest=limits.label_length, required=True)
    new = NewSink(
        id=fields.identifier("id"),
        label=label if isinstance(label, str) else "",
        description=_given(fields.text("description", longest=limits.description_length)),
        tags=_given(fields.text("tags", longest=limits.tags_length)),
        icon=_given(_icon(fields, limits)),
        entries=_entries(fields, limits),
    )
    return new, fields.finish()


def read_sink_changes(body: object, limits: Limits) -> tuple[SinkChanges, tuple[str, ...]]:
    """The checked body (contract DS6) and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    changes = SinkChanges(
        label=fields.label(longest=limits.label_length, required=False),
        description=fields.text("description", longest=limits.description_length),
        tags=fields.text("tags", longest=limits.tags_length),
        icon=_icon(fields, limits),
    )
    return changes, fields.finish()


def read_new_entry(body: object, limits: Limits) -> tuple[NewEntry, tuple[str, ...]]:
    """The checked body (contract DS8) and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    entry = _entry(fields, limits)
    return entry, fields.finish()


def read_entry_changes(body: object, limits: Limits) -> tuple[EntryChanges, tuple[str, ...]]:
    """The checked body (contract DS9) and the ignored names. Null clears the value; the data type can't be cleared.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    data_type = data_type_of(fields, limits)
    if data_type is None:
        fields.mistake("dataType", "wrong_type", "can't be null")
    changes = EntryChanges(value=value_of(fields, limits), data_type=UNSET if data_type is None else data_type)
    return changes, fields.finish()


def key_of(fields: Fields, limits: Limits) -> str:
    """The required member ``key``; empty where it is wrong."""
    key = fields.raw("key")
    if not isinstance(key, str):
        fields.mistake("key", "required" if key is UNSET or key is None else "wrong_type", "must be a string")
        return ""
    text = normalised(key)
    if fault := key_fault(text, limits):
        fields.mistake("key", "bad_key", fault)
        return ""
    return text


def value_of(fields: Fields, limits: Limits, *, required: bool = False) -> Text:
    """The member ``value``, byte for byte as it was sent."""
    value = fields.raw("value")
    if value is UNSET or value is None:
        if required:
            fields.mistake("value", "required", "is required and must be a string")
        return UNSET if value is UNSET else None
    if not isinstance(value, str):
        fields.mistake("value", "wrong_type", "must be a string")
        return UNSET
    if byte_length(value) > limits.value_bytes:
        fields.mistake("value", "too_long", f"may have {limits.value_bytes} bytes at the most")
        return UNSET
    return value


def data_type_of(fields: Fields, limits: Limits, *, required: bool = False) -> Text:
    """The member ``dataType``."""
    value = fields.raw("dataType")
    if value is UNSET or value is None:
        if required:
            fields.mistake("dataType", "required", "is required and must be a string")
        return UNSET if value is UNSET else None
    if not isinstance(value, str):
        fields.mistake("dataType", "wrong_type", "must be a string")
    elif not is_data_type(value, limits):
        fields.mistake(
            "dataType",
            "bad_data_type",
            f"must be a letter and up to {limits.data_type_length - 1} of A-Z a-z 0-9 _ . -",
        )
    else:
        return value
    return UNSET


def _entry(fields: Fields, limits: Limits) -> NewEntry:
    data_type = data_type_of(fields, limits, required=True)
    return NewEntry(
        key=key_of(fields, limits),
        value=_given(value_of(fields, limits)),
        data_type=data_type if isinstance(data_type, str) else "",
        id=fields.identifier("id"),
    )


def _entries(fields: Fields, limits: Limits) -> tuple[NewEntry, ...]:
    items = fields.raw("entries")
    if items is UNSET or items is None:
        return ()
    if not isinstance(items, list):
        fields.mistake("entries", "wrong_type", "must be a list of entries")
        return ()
    if len(items) > limits.new_sink_entries:
        fields.mistake("entries", "too_many_items", f"may have {limits.new_sink_entries} items at the most")
        return ()
    entries: list[NewEntry] = []
    keys: set[str] = set()
    for index, item in enumerate(items):
        child = fields.child(f"entries/{index}", item)
        entry = _entry(child, limits)
        if entry.key in keys:
            child.mistake("key", "duplicate_key", "is the key of an earlier entry of this request")
        elif entry.key:
            keys.add(entry.key)
        child.close()
        entries.append(entry)
    return tuple(entries)


def _icon(fields: Fields, limits: Limits) -> Text:
    """The icon as compact JSON with the given members only; an object, or a string that holds one (contract S3)."""
    value = fields.raw("icon")
    if value is UNSET or value is None:
        return UNSET if value is UNSET else None
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except (Invalid, *MALFORMED):
            fields.mistake("icon", "wrong_type", "must be an icon object, or a string holding one as JSON")
            return UNSET
    child = fields.child("icon", value)
    if not isinstance(value, dict):
        return UNSET
    icon: dict[str, object] = {}
    for name in ("source", "name", "color"):
        text = child.text(name, longest=limits.icon_bytes)
        if isinstance(text, str):
            icon[name] = text
    metadata = child.raw("metadata")
    if isinstance(metadata, dict):
        icon["metadata"] = metadata
    elif metadata is not UNSET and metadata is not None:
        child.mistake("metadata", "wrong_type", "must be a JSON object")
    child.close()
    text = encode(icon).decode()
    if byte_length(text) > limits.icon_bytes:
        fields.mistake("icon", "too_long", f"may have {limits.icon_bytes} bytes as JSON at the most")
    return text


def _given(text: str | UnsetType | None) -> str | None:
    return None if isinstance(text, UnsetType) else text
