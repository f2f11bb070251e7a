"""The body of a mass update: the single form or the bulk form (contract M1, M3, M6, M8). Performs no I/O.

There are two readers. The full reader checks item by item and reports every mistake. The fast reader accepts only bodies
without a mistake: it decodes typed items and checks all keys together, without a Python call for each item. The full
reader reads any other body, so the result is always that of the full reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unicodedata import is_normalized

import msgspec
from msgspec import UNSET, UnsetType

from workspaced.core.bodies import read_body
from workspaced.core.json_body import MALFORMED, decode, without_bom
from workspaced.core.problems import FieldError, Invalid
from workspaced.core.text import as_uuid, byte_length, normalised
from workspaced.core.timestamps import microseconds
from workspaced.resources.data_sinks.origins import Origins, SingleOrigin, ValueOrigin, entry_origins
from workspaced.resources.data_sinks.rules import MassRemoval, MassSetting, SingleSetting, is_data_type, key_fault
from workspaced.resources.data_sinks.values import Change
from workspaced.settings.model import Limits

_ENVELOPE = re.compile(rb'\s*\{\s*"entries"\s*:')


class _MassItem(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """An item in the form that the fast reader accepts."""

    key: str
    value: str | UnsetType = UNSET
    data_type: str | None = None
    id: str | None = None
    observed_at: str | None = None
    delete: bool = False


class _SingleItem(_MassItem, forbid_unknown_fields=True, rename="camel", gc=False):
    origin: dict[str, Any] | None = None


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    entries: list[_MassItem]
    origins: list[dict[str, Any]] = []


# This call takes a third of the time of ``Change(…)``, which is a Python function. A request may have thousands of items.
_new_change: Callable[[tuple[object, ...]], Change] = partial(tuple.__new__, Change)
_ITEM = msgspec.json.Decoder(_SingleItem)
_ITEMS = msgspec.json.Decoder(list[_MassItem])
_ENVELOPED_ITEMS = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """A bulk body. ``enveloped``: the body has the form ``{"entries": […]}``, and so has the response.

    ``changes`` has None for an invalid item; ``faults`` has the mistakes of the item. The ``origin`` of a change contains a
    position in ``origins``; see `origin_number`.
    """

    changes: Sequence[Change | None]
    enveloped: bool
    faults: Mapping[int, Sequence[FieldError]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    origins: Sequence[ValueOrigin] = ()


class Single(msgspec.Struct, frozen=True, kw_only=True):
    """A single-form body: one entry."""

    change: Change
    ignored: tuple[str, ...] = ()
    origin: ValueOrigin | None = None


def read_mass(body: bytes, limits: Limits, *, key: str | None) -> Single | Bulk:
    """Read a mass body. ``key``: the key at the end of the path; None: the path ends with ``/mass``.

    Raises:
        Invalid: the body as a whole or its single entry has mistakes. Mistakes of bulk items are in `Bulk.faults` instead.
    """
    text = without_bom(body)
    if key is None and (found := _read_single_fast(text, limits) or _read_bulk_fast(text, limits)):
        return found
    value = decode(body)
    if isinstance(value, dict) and "entries" not in value:
        return _read_single(value, limits, key)
    if key is not None:
        raise Invalid.at("", "bulk_needs_mass", "Only the path that ends with /mass accepts several entries.")
    return _read_bulk(value, limits)


def _read_single(value: dict[str, object], limits: Limits, key: str | None) -> Single:
    if key is not None:
        if (fault := key_fault(key, limits)) is not None:
            raise Invalid.at("", "bad_key", f"The key in the path {fault}.")
        named = value.setdefault("key", key)
        if not isinstance(named, str) or normalised(named) != key:
            raise Invalid.at("/key", "key_mismatch", "The body has another key than the path.")
    read, change, ignored = _read_item(value, limits, setting=SingleSetting)
    return _with_origin(change, getattr(read, "origin", None), ignored)


def _with_origin(change: Change, origin: SingleOrigin | None, ignored: tuple[str, ...] = ()) -> Single:
    if origin is None:
        return Single(change=change, ignored=ignored)
    return Single(change=change._replace(origin=origin.row or 0), ignored=ignored, origin=origin.shared())


def _read_single_fast(text: bytes, limits: Limits) -> Single | None:
    """Read the single form; None if the full reader must read it."""
    if b"\\u0000" in text or text[:1] != b"{":
        return None
    try:
        item = _ITEM.decode(text)
        change = _change_of(item)
        origin, unknown = (None, ()) if item.origin is None else read_body(SingleOrigin, item.origin, limits)
    except (Invalid, *MALFORMED):
        return None
    key, value, data_type, entry_id, _, remove, _ = change
    if unknown:
        return None
    if remove or value is None or byte_length(value) > limits.value_bytes:
        return None
    if (item.id is not None and not entry_id) or (data_type is not None and not is_data_type(data_type, limits)):
        return None
    return _with_origin(change, origin) if key == normalised(key) and key_fault(key, limits) is None else None


def _read_bulk_fast(text: bytes, limits: Limits) -> Bulk | None:
    """Read the bulk form; None if the full reader must read it."""
    enveloped = bool(_ENVELOPE.match(text))
    if b"\\u0000" in text or not (enveloped or text.lstrip()[:1] == b"["):
        return None
    try:
        body = _ENVELOPED_ITEMS.decode(text) if enveloped else _Envelope(_ITEMS.decode(text))
        origins, numbers, unknown = _read_origins(body.origins, len(body.entries), limits)
    except (Invalid, *MALFORMED):
        return None
    if unknown or not 1 <= len(body.entries) <= limits.bulk_items:
        return None
    changes = _plain_changes(body.entries, numbers, limits)
    return Bulk(changes=changes, enveloped=enveloped, origins=origins) if changes else None


def _read_origins(
    given: object, entries: int, limits: Limits
) -> tuple[Sequence[ValueOrigin], Iterable[int | None], tuple[str, ...]]:
    """Return the origins, the origin number of each entry, and the ignored members. Raises Invalid: there are mistakes."""
    read, ignored = (
        (Origins(), ()) if not given and isinstance(given, list) else read_body(Origins, {"origins": given}, limits)
    )
    return *entry_origins(read.origins, entries), ignored


def _plain_changes(items: Sequence[_MassItem], origins: Iterable[int | None], limits: Limits) -> list[Change] | None:
    """Return the items as changes; None if any item has a mistake."""
    try:
        changes = [_change_of(item, origin) for item, origin in zip(items, origins, strict=True)]
    except MALFORMED:
        return None
    complete = all(change.value is not None or change.remove for change in changes)
    ids = all(change.id or item.id is None for change, item in zip(changes, items, strict=True))
    types = all(kind is None or is_data_type(kind, limits) for kind in {change.data_type for change in changes})
    if not (complete and ids and types and _plain_keys([change.key for change in changes], limits)):
        return None
    values = [item.value for item in items if not isinstance(item.value, UnsetType)]
    return changes if _short_values(values, limits) else None


def _change_of(item: _MassItem, origin: int | None = None) -> Change:
    return _new_change(
        (
            item.key,
            None if item.delete or item.value is UNSET else item.value,
            item.data_type,
            item.id and as_uuid(item.id),
            None if item.observed_at is None else microseconds(item.observed_at),
            item.delete,
            origin,
        )
    )


def _plain_keys(keys: Sequence[str], limits: Limits) -> bool:
    joined = "".join(keys)
    longest = max(map(len, keys))
    if not joined.isprintable() or min(map(len, keys)) == 0 or longest > limits.key_length:
        return False
    if joined.isascii():
        fits = longest <= limits.key_bytes
    else:
        fits = longest * 4 <= limits.key_bytes and all(is_normalized("NFC", key) for key in keys)
    trimmed = (" " not in joined and joined.isascii()) or all(key == key.strip() for key in keys)
    return fits and trimmed and not {".", ".."}.intersection(keys)


def _short_values(values: Sequence[str], limits: Limits) -> bool:
    if max(map(len, values), default=0) * 4 <= limits.value_bytes:
        return True
    return all(byte_length(value) <= limits.value_bytes for value in values)


def _read_bulk(value: object, limits: Limits) -> Bulk:
    enveloped = isinstance(value, dict)
    pointer = "entries/" if enveloped else ""
    ignored: dict[str, None] = {}
    items = value
    if isinstance(value, dict):
        if "key" in value:
            raise Invalid.at("", "ambiguous_body", "The body has both 'key' and 'entries'.")
        items = value["entries"]
        ignored = dict.fromkeys(value.keys() - {"entries", "origins"})
    if not isinstance(items, list):
        raise Invalid.at("", "wrong_type", "The body must be an entry, a list of entries or an object with 'entries'.")
    if not items:
        raise Invalid("no_items", "A mass update needs at least one item.")
    if len(items) > limits.bulk_items:
        raise Invalid("too_many_items", f"A mass update may have {limits.bulk_items} items at the most.")
    given = value.get("origins") if isinstance(value, dict) else None
    origins, numbers, unknown = _read_origins([] if given is None else given, len(items), limits)
    ignored |= dict.fromkeys(unknown)
    changes: list[Change | None] = []
    faults: dict[int, Sequence[FieldError]] = {}
    for index, (item, origin) in enumerate(zip(items, numbers, strict=True)):
        try:
            _, change, unknown = _read_item(item, limits, pointer=f"/{pointer}{index}")
            ignored |= dict.fromkeys(unknown)
            changes.append(change._replace(origin=origin))
        except Invalid as invalid:
            faults[index] = invalid.mistakes
            changes.append(None)
    return Bulk(changes=changes, enveloped=enveloped, faults=faults, ignored=tuple(sorted(ignored)), origins=origins)


def _read_item(
    item: object, limits: Limits, *, pointer: str = "", setting: type[MassSetting] = MassSetting
) -> tuple[MassRemoval, Change, tuple[str, ...]]:
    remove = isinstance(item, dict) and item.get("delete") is True
    read, ignored = read_body(MassRemoval if remove else setting, item, limits, pointer=pointer)
    value = None if remove else read.value
    return read, Change(read.key, value, read.data_type, read.id, read.observed_at, remove), ignored
