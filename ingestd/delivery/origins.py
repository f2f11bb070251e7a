"""The origins of entries in requests, for a service that announces that it stores origins (service contract M12)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from urllib.parse import quote

import msgspec

from ingestd.core.normal_form import nfc
from ingestd.delivery.items import Item, claim_body, in_row_order, items_body
from ingestd.mirror.port import Claim, PartOrigin
from ingestd.wire.origin import MAX_LINK_CHARS, OriginLimits, encode_row_steps

_PROGRAM = "ingestd"
"""The source of values with an unknown origin, such as removals of keys that no source has named."""


class OriginEncoder:
    """Encodes origins within the limits of a service. Origins and members that do not fit are left out.

    ``limits``: None if the service takes no origins; the results are then empty. ``page``: the address of the daemon's page, or
    empty.
    """

    def __init__(self, limits: OriginLimits | None, *, page: str) -> None:
        self._limits = limits
        self._page = page

    def claim_body(self, claim: Claim, max_bytes: int) -> bytes:
        """Return the body of a bulk request with all items of a claim."""
        if self._limits is None:
            return claim_body(claim)
        ordered = in_row_order(claim)
        origins = self._encode((part.origin, part.items, part.row_steps) for part in ordered.parts)
        return _bulk_body(claim_body(ordered), origins, max_bytes)

    def items_body(self, items: Sequence[Item], max_bytes: int) -> bytes:
        """Return the body of a bulk request with these items."""
        return _bulk_body(items_body(items), self.of_items(items), max_bytes)

    def of_items(self, items: Sequence[Item]) -> bytes:
        """Return the JSON array of the origins of these items."""
        groups = ((origin, [item.row for item in group]) for origin, group in groupby(items, attrgetter("origin")))
        return self._encode((origin, len(rows), encode_row_steps(rows)) for origin, rows in groups)

    def of_item(self, item: Item) -> bytes:
        """Return the JSON object of the origin of an item."""
        if self._limits is None:
            return b""
        return msgspec.json.encode(self._members(item.origin, self._limits) | ({"row": item.row} if item.row else {}))

    def _encode(self, groups: Iterable[tuple[PartOrigin, int, bytes]]) -> bytes:
        if self._limits is None:
            return b""
        origins = [
            self._members(origin, self._limits) | {"count": items} | ({"rowSteps": msgspec.Raw(steps)} if steps else {})
            for (origin, items, steps), _ in zip(groups, range(self._limits.max_origins), strict=False)
        ]
        return msgspec.json.encode(origins)

    def _members(self, origin: PartOrigin, limits: OriginLimits) -> dict[str, object]:
        """Return the members of an origin that all its entries share."""
        texts = {
            "source": origin.partition,
            "file": origin.file,
            "run": str(origin.run or ""),
            "pipeline": origin.pipeline,
        }
        members: dict[str, object] = {"source": _PROGRAM}
        members |= {name: nfc(text) for name, text in texts.items() if _fits(nfc(text), limits.max_text)}
        link = f"{self._page}/files?name={quote(origin.partition, safe='')}"
        if self._page and origin.partition and len(link) <= MAX_LINK_CHARS:
            members["link"] = link
        return members


def _bulk_body(items: bytes, origins: bytes, max_bytes: int) -> bytes:
    """Return the JSON object of items and origins, or the items if there are no origins or they do not fit."""
    body = b'{"entries":' + items + b',"origins":' + origins + b"}"
    return body if origins and len(body) <= max_bytes else items


def _fits(text: str, max_text: int) -> bool:
    is_one_line = text.isprintable() or all(unicodedata.category(one) != "Cc" for one in text)
    return bool(text.strip()) and len(text) <= max_text and is_one_line
