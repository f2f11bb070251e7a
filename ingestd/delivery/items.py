"""The items of a claim, as the JSON bytes that the mirror stores, and the request bodies that contain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import msgspec
from msgspec.structs import replace

from ingestd.mirror.port import Claim, ClaimPart, Kind, PartOrigin
from ingestd.wire.origin import decode_row_steps, encode_row_steps


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    key: str
    value: str | None = None
    data_type: str | None = None


_ITEM = msgspec.json.Decoder(_Item)
_RAW = msgspec.json.Decoder(tuple[msgspec.Raw, ...])


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a claim; ``raw`` is its JSON exactly as the mirror stores it.

    ``oldest``, ``origin``: see `ClaimPart`. ``row``: the row of the entry in its origin; 0: not known.
    """

    kind: Kind
    segment: int
    oldest: int
    key: str
    value: str | None
    data_type: str | None
    raw: bytes
    origin: PartOrigin
    row: int


def claim_body(claim: Claim) -> bytes:
    """Return the JSON array of all items of a claim, without decoding them."""
    if len(claim.parts) == 1:
        return claim.parts[0].body
    return b"[" + b",".join(part.body.strip()[1:-1] for part in claim.parts) + b"]"


def items_body(items: Iterable[Item]) -> bytes:
    """Return the JSON array of some items."""
    return b"[" + b",".join(item.raw for item in items) + b"]"


def in_row_order(claim: Claim) -> Claim:
    """Return a claim with the items of each part in row order, because the encoded row steps are then short."""
    return replace(claim, parts=tuple(_in_row_order(part) if b"-" in part.row_steps else part for part in claim.parts))


def _in_row_order(part: ClaimPart) -> ClaimPart:
    pairs = zip(decode_row_steps(part.row_steps, part.items), _RAW.decode(part.body), strict=True)
    rows, items = zip(*sorted(pairs, key=itemgetter(0)), strict=True)
    return replace(part, body=msgspec.json.encode(items), row_steps=encode_row_steps(rows))


def single_body(entry: bytes, origin: bytes) -> bytes:
    """Return the body of a single write, from the JSON object of its entry and the JSON object of its origin, if any."""
    return entry[:-1] + b',"origin":' + origin + b"}" if origin else entry


def split_items(claim: Claim) -> list[Item]:
    """Return the items of a claim, in its order."""
    items: list[Item] = []
    for part in claim.parts:
        rows = decode_row_steps(part.row_steps, part.items)
        for raw, row in zip(_RAW.decode(part.body), rows, strict=True):
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
                    origin=part.origin,
                    row=row,
                )
            )
    return items


def split_in_half(items: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the two halves of some items. If there is one item, the first half is empty."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
