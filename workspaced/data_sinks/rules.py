"""What sinks and entries may be (contract, S1 to S14). Pure: bodies in, checked values or every mistake out."""

from __future__ import annotations

import re

from msgspec import UNSET, UnsetType

from workspaced.data_sinks.values import EntryChanges, NewEntry, NewSink, SinkChanges
from workspaced.members import Members, Text
from workspaced.problems import Invalid
from workspaced.settings import Limits
from workspaced.text import byte_length, has_controls, normalised
from workspaced.web.json_body import MALFORMED, decode, encode

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)


def key_fault(key: str, limits: Limits) -> str | None:
    """Why a text (in NFC) can't be a key, as the end of a sentence; None where it can (S7).

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
    """Whether a text can be a data type; the vocabulary is open (S9)."""
    return len(text) <= limits.data_type_length and _DATA_TYPE.fullmatch(text) is not None


def read_new_sink(body: object, limits: Limits) -> tuple[NewSink, tuple[str, ...]]:
    """DS5's body and the ignored names.

    Raises:
        Invalid: something is wrong; a second entry with a key is pointed at.
    """
    members = Members(body)
    label = members.label(longest=limits.label_length, required=True)
    new = NewSink(
        id=members.identifier("id"),
        label=label if isinstance(label, str) else "",
        description=_given(members.text("description", longest=limits.description_length)),
        tags=_given(members.text("tags", longest=limits.tags_length)),
        icon=_given(_icon(members, limits)),
        entries=_entries(members, limits),
    )
    return new, members.finish()


def read_sink_changes(body: object, limits: Limits) -> tuple[SinkChanges, tuple[str, ...]]:
    """DS6's body and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    members = Members(body)
    changes = SinkChanges(
        label=members.label(longest=limits.label_length, required=False),
        description=members.text("description", longest=limits.description_length),
        tags=members.text("tags", longest=limits.tags_length),
        icon=_icon(members, limits),
    )
    return changes, members.finish()


def read_new_entry(body: object, limits: Limits) -> tuple[NewEntry, tuple[str, ...]]:
    """DS8's body and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    members = Members(body)
    entry = _entry(members, limits)
    return entry, members.finish()


def read_entry_changes(body: object, limits: Limits) -> tuple[EntryChanges, tuple[str, ...]]:
    """DS9's body and the ignored names. Null clears the value; the data type can't be cleared.

    Raises:
        Invalid: something is wrong.
    """
    members = Members(body)
    data_type = data_type_of(members, limits)
    if data_type is None:
        members.mistake("dataType", "wrong_type", "can't be null")
    changes = EntryChanges(value=value_of(members, limits), data_type=UNSET if data_type is None else data_type)
    return changes, members.finish()


def key_of(members: Members, limits: Limits) -> str:
    """The required member ``key``; empty where it is wrong."""
    key = members.raw("key")
    if not isinstance(key, str):
        members.mistake("key", "required" if key is UNSET or key is None else "wrong_type", "must be a string")
        return ""
    text = normalised(key)
    if fault := key_fault(text, limits):
        members.mistake("key", "bad_key", fault)
        return ""
    return text


def value_of(members: Members, limits: Limits, *, required: bool = False) -> Text:
    """The member ``value``, byte for byte as it was sent."""
    value = members.raw("value")
    if value is UNSET or value is None:
        if required:
            members.mistake("value", "required", "is required and must be a string")
        return UNSET if value is UNSET else None
    if not isinstance(value, str):
        members.mistake("value", "wrong_type", "must be a string")
        return UNSET
    if byte_length(value) > limits.value_bytes:
        members.mistake("value", "too_long", f"may have {limits.value_bytes} bytes at the most")
        return UNSET
    return value


def data_type_of(members: Members, limits: Limits, *, required: bool = False) -> Text:
    """The member ``dataType``."""
    value = members.raw("dataType")
    if value is UNSET or value is None:
        if required:
            members.mistake("dataType", "required", "is required and must be a string")
        return UNSET if value is UNSET else None
    if not isinstance(value, str):
        members.mistake("dataType", "wrong_type", "must be a string")
    elif not is_data_type(value, limits):
        members.mistake(
            "dataType",
            "bad_data_type",
            f"must be a letter and up to {limits.data_type_length - 1} of A-Z a-z 0-9 _ . -",
        )
    else:
        return value
    return UNSET


def _entry(members: Members, limits: Limits) -> NewEntry:
    data_type = data_type_of(members, limits, required=True)
    return NewEntry(
        key=key_of(members, limits),
        value=_given(value_of(members, limits)),
        data_type=data_type if isinstance(data_type, str) else "",
        id=members.identifier("id"),
    )


def _entries(members: Members, limits: Limits) -> tuple[NewEntry, ...]:
    items = members.raw("entries")
    if items is UNSET or items is None:
        return ()
    if not isinstance(items, list):
        members.mistake("entries", "wrong_type", "must be a list of entries")
        return ()
    if len(items) > limits.new_sink_entries:
        members.mistake("entries", "too_many_items", f"may have {limits.new_sink_entries} items at the most")
        return ()
    entries: list[NewEntry] = []
    keys: set[str] = set()
    for index, item in enumerate(items):
        child = members.child(f"entries/{index}", item)
        entry = _entry(child, limits)
        if entry.key in keys:
            child.mistake("key", "duplicate_key", "is the key of an earlier entry of this request")
        elif entry.key:
            keys.add(entry.key)
        child.close()
        entries.append(entry)
    return tuple(entries)


def _icon(members: Members, limits: Limits) -> Text:
    """The icon as compact JSON with the given members only; an object, or a string that holds one (S3)."""
    value = members.raw("icon")
    if value is UNSET or value is None:
        return UNSET if value is UNSET else None
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except (Invalid, *MALFORMED):
            members.mistake("icon", "wrong_type", "must be an icon object, or a string holding one as JSON")
            return UNSET
    child = members.child("icon", value)
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
        members.mistake("icon", "too_long", f"may have {limits.icon_bytes} bytes as JSON at the most")
    return text


def _given(text: str | UnsetType | None) -> str | None:
    return None if isinstance(text, UnsetType) else text
