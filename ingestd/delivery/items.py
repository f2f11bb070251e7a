"""The items of a claim: their ready-made bytes joined without decoding, or taken apart where one of them is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ingestd.mirror.port import Claim, Kind


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    key: str
    value: str | None = None
    data_type: str | None = None


_ITEM = msgspec.json.Decoder(_Item)
_RAW = msgspec.json.Decoder(tuple[msgspec.Raw, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of a claim; ``raw`` is its JSON, byte for byte as the mirror has it."""

    kind: Kind
    segment: int
    key: str
    value: str | None
    data_type: str | None
    raw: bytes


def joined(claim: Claim) -> bytes:
    """The JSON array of all items of a claim; the parts' arrays are joined as bytes."""
    if len(claim.parts) == 1:
        return claim.parts[0].body
    return b"[" + b",".join(part.body.strip()[1:-1] for part in claim.parts) + b"]"


def array(items: Iterable[Item]) -> bytes:
    """The JSON array of some items."""
    return b"[" + b",".join(item.raw for item in items) + b"]"


def taken_apart(claim: Claim) -> list[Item]:
    """The items of a claim, in its order."""
    items: list[Item] = []
    for part in claim.parts:
        for raw in _RAW.decode(part.body):
            content = bytes(raw)
            item = _ITEM.decode(content)
            items.append(
                Item(
                    kind=part.kind,
                    segment=part.segment,
                    key=item.key,
                    value=item.value,
                    data_type=item.data_type,
                    raw=content,
                )
            )
    return items


def halves(items: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    """Two halves of at least two items."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
