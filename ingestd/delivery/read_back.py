"""Reading back after a request with an unknown outcome, for a service without a writer fence (service contract M11).

A request with an unknown outcome may take effect after a newer request. A service with a fence refuses a late request. If a
service has no fence, the entries are read back before they are acknowledged, and stay pending if the service has other values.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from ingestd.client.request import Unaddressable
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.outcome import may_take_effect
from ingestd.delivery.blocker import Blocker, blocker_of
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.items import Item
from ingestd.delivery.resolved_sink import ResolvedSink
from ingestd.delivery.sink_rows import Row, row_of
from ingestd.mirror.port import LaneState


class ReadBack:
    """Reads entries of one lane back.

    ``unknown``: by id of the sink in the mirror, the newest segment of a request with an unknown outcome. The caller keeps this
    mapping when it replaces the lane.
    """

    def __init__(
        self, state: LaneState, *, client: ServiceClient, keys: IdempotencyKeys, unknown: MutableMapping[int, int]
    ) -> None:
        self._client = client
        self._keys = keys
        self._lane = state.id
        self._unknown = unknown
        unknown.setdefault(state.id, state.claimed_before)

    def note(self, segments: Iterable[int]) -> None:
        """Record that a request with entries of these segments may still take effect."""
        self._unknown[self._lane] = max(self._unknown[self._lane], *segments)

    def note_response(self, response: ServiceResponse[Any], segments: Iterable[int]) -> None:
        """Record the response to a request with entries of these segments."""
        if may_take_effect(response.facts):
            self.note(segments)

    @property
    def has_unknown_outcomes(self) -> bool:
        """Whether a request of this lane or of an earlier process may still take effect."""
        return self._unknown[self._lane] > 0

    def is_needed(self, oldest: int, response: ServiceResponse[Any]) -> bool:
        """Return whether entries must be read back after a success. ``oldest``: see `ClaimPart`."""
        return not response.fenced and oldest <= self._unknown[self._lane]

    async def check(self, sink: ResolvedSink, items: Sequence[Item], response: ServiceResponse[Any]) -> Blocker | None:
        """Read back the delivered ``items`` that must be read. Return a blocker if the service does not have them."""
        delivered = [item for item in items if self.is_needed(item.oldest, response)]
        if not delivered:
            return None
        found = await self._read(sink, delivered)
        if isinstance(found, Blocker):
            return found
        late = [item.key for item in delivered if not _is_shown(item, found.get(_nfc(item.key)))]
        if not late:
            return None
        # Without a new key, the service would repeat its stored response to the same request.
        self._keys.record_refusal()
        return Blocker(
            reaction="retry",
            sentence=f"An earlier request took effect after a later one, or another program writes to the sink: {late[0]!r} "
            f"{f'and {len(late) - 1} others have' if len(late) > 1 else 'has'} not the value that was sent last. It is sent "
            "again.",
        )

    async def _read(self, sink: ResolvedSink, items: Sequence[Item]) -> Mapping[str, Row] | Blocker:
        """Return the service's entries with the keys of ``items``, by normalized key. Reads one entry, or the whole sink."""
        wanted = {_nfc(item.key) for item in items}
        if len(items) == 1:
            try:
                entry = await self._client.get_entry(sink.workspace, sink.sink, key=items[0].key)
            except Unaddressable:
                pass  # only a read of the whole sink returns this entry
            else:
                if entry.value is not None:
                    return {_nfc(entry.value.key): (entry.value.key, entry.value.value, entry.value.data_type)}
                return {} if entry.outcome.remedy == "missing" else blocker_of(entry.outcome)
        found: dict[str, Row] = {}

        async def take(rows: list[Row]) -> None:
            found.update({_nfc(row[0]): row for row in rows if _nfc(row[0]) in wanted})

        response = await self._client.read_sink(sink.workspace, sink.sink, take, row_of)
        return found if response.ok else blocker_of(response.outcome)


def _is_shown(item: Item, row: Row | None) -> bool:
    if item.kind == "delete" or row is None:
        return (item.kind == "delete") is (row is None)
    return row[1] == item.value and (item.data_type is None or row[2] is None or row[2] == item.data_type)


def _nfc(key: str) -> str:
    return unicodedata.normalize("NFC", key)
