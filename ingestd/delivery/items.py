"""The items of a claim, as the JSON bytes that the mirror stores, and the bodies of requests made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ingestd.mirror.port import Claim, Kind


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    key: str
    value: str | None = None
    data_type: str | None = None


_ITEM = msgspec.json.Decoder(_Item)
_RAW = msgspec.json.Decoder(tuple[msgspec.Raw, ...])


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a claim; ``raw`` is its JSON exactly as the mirror stores it. ``oldest``: see `ClaimPart`."""

    kind: Kind
    segment: int
    oldest: int
    key: str
    value: str | None
    data_type: str | None
    raw: bytes


def claim_body(claim: Claim) -> bytes:
    """Return the JSON array of all items of a claim, without decoding them."""
    if len(claim.parts) == 1:
        return claim.parts[0].body
    return b"[" + b",".join(part.body.strip()[1:-1] for part in claim.parts) + b"]"


def items_body(items: Iterable[Item]) -> bytes:
    """Return the JSON array of some items."""
    return b"[" + b",".join(item.raw for item in items) + b"]"


def split_items(claim: Claim) -> list[Item]:
    """Return the items of a claim, in its order."""
    items: list[Item] = []
    for part in claim.parts:
        for raw in _RAW.decode(part.body):
            content = bytes(raw)
            item = _ITEM.decode(content)
            items.append(
                Item(
                    kind=part.kind,
                    segment=part.segment,
                    oldest=part.oldest,
                    key=item.key,
                    value=item.value,
                    data_type=item.data_type,
                    raw=content,
                )
            )
    return items


def split_in_half(items: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the two halves of at least two items."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
