"""From the body of a 2xx to a value, as the daemon needs it; a body that is not what its operation answers is no success."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from ingestd.client.resources import BulkResult, Entry, ItemResult, Sink, Workspace


class Unreadable(ValueError):
    """The body is HTML, cut off, or of another shape."""


class Mismatch(ValueError):
    """The body is of the right shape but speaks of other entries than were sent."""


class _Counts(msgspec.Struct, frozen=True, kw_only=True):
    accepted: int | None = None
    entries: tuple[Entry, ...] | None = None
    results: tuple[ItemResult, ...] | None = None


_SINK = msgspec.json.Decoder(Sink)
_SINKS = msgspec.json.Decoder(tuple[Sink, ...])
_ENTRY = msgspec.json.Decoder(Entry)
_ENTRIES = msgspec.json.Decoder(tuple[Entry, ...])
_WORKSPACE = msgspec.json.Decoder(Workspace)
# The document does not show whether this answer is a list.
_WORKSPACES = msgspec.json.Decoder(Workspace | tuple[Workspace, ...])
_COUNTS = msgspec.json.Decoder(_Counts)


def sink(body: bytes, _headers: Mapping[str, str]) -> Sink:
    """A sink, with or without entries."""
    return _SINK.decode(body)


def sinks(body: bytes, _headers: Mapping[str, str]) -> tuple[Sink, ...]:
    """A list of sinks."""
    return _SINKS.decode(body)


def entry(body: bytes, _headers: Mapping[str, str]) -> Entry:
    """An entry."""
    return _ENTRY.decode(body)


def workspace(body: bytes, _headers: Mapping[str, str]) -> Workspace:
    """A workspace."""
    return _WORKSPACE.decode(body)


def workspaces(body: bytes, _headers: Mapping[str, str]) -> tuple[Workspace, ...]:
    """A list of workspaces, or one, which is a list of one."""
    found = _WORKSPACES.decode(body)
    return (found,) if isinstance(found, Workspace) else found


def bulk(body: bytes, _headers: Mapping[str, str]) -> BulkResult:
    """Any form of the answer to a bulk mass-update."""
    if body.lstrip().startswith(b"["):
        return BulkResult(accepted=len(_ENTRIES.decode(body)))
    counts = _COUNTS.decode(body)
    if counts.results is not None:
        return BulkResult(accepted=sum(result.status < 300 for result in counts.results), results=counts.results)
    if counts.accepted is not None:
        return BulkResult(accepted=counts.accepted)
    if counts.entries is not None:
        return BulkResult(accepted=len(counts.entries))
    raise Unreadable("neither counts nor entries nor results")


def nothing(body: bytes, _headers: Mapping[str, str]) -> None:
    """No content: an empty body. JSON is let pass, a record of what was deleted does no harm; HTML is a proxy."""
    if body.strip():
        msgspec.json.decode(body)


def same_key(sent: str, answered: str) -> bool:
    """Whether two keys are one key to a service that normalises text to NFC."""
    return sent == answered or unicodedata.normalize("NFC", sent) == unicodedata.normalize("NFC", answered)


def expect_key(entry: Entry, key: str) -> None:
    """Refuse an answer about another key than was sent."""
    if not same_key(key, entry.key):
        raise Mismatch("It names another key.")


def expect_count(result: BulkResult, items: int) -> None:
    """Refuse an answer that does not account for each of ``items`` items exactly once."""
    if result.results is not None:
        if sorted(item.index for item in result.results) != list(range(items)):
            raise Mismatch(f"It has results for {len(result.results)} of {items} items.")
    elif result.accepted != items:
        raise Mismatch(f"It accounts for {result.accepted} of {items} items.")


def expect_keys(sink: Sink, keys: Sequence[str]) -> None:
    """Refuse an answer about a created sink that lists its entries, but not those that were sent."""
    if sink.entries is None:
        return
    listed = {unicodedata.normalize("NFC", entry.key) for entry in sink.entries}
    if missing := sum(unicodedata.normalize("NFC", key) not in listed for key in keys):
        raise Mismatch(f"It lacks {missing} of {len(keys)} entries.")
