"""The identity that all hosts of a configuration share: the name of their writer, and where its lease is.

The first host decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias
from uuid import uuid4

import msgspec

from ingestd.standby.place import Place, PlaceUnavailable

LeaseKind: TypeAlias = Literal["service", "database"]

_NAME = "identity"


class SharedIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """``writer``: the name under which all hosts send. ``lease``: what stores its lease. Two stores would have two holders."""

    writer: str
    lease: LeaseKind = "service"


async def shared_identity(
    place: Place, writer: str, *, choose_lease: Callable[[str], Awaitable[LeaseKind]]
) -> SharedIdentity:
    """Return the identity in a place. Store it if there is none; ``writer`` is then its name, unless it is empty.

    Raises:
        PlaceUnavailable: the place can't be used now.
        LeaseUnavailable: where the lease can be is not known now.
    """
    stored = await asyncio.to_thread(place.get, _NAME)
    if stored is None:
        name = writer or str(uuid4())
        proposed = SharedIdentity(writer=name, lease=await choose_lease(name))
        await asyncio.to_thread(place.put, _NAME, msgspec.json.encode(proposed), new=True)
        stored = await asyncio.to_thread(place.get, _NAME)
    try:
        return msgspec.json.decode(stored or b"", type=SharedIdentity)
    except msgspec.DecodeError as error:
        raise PlaceUnavailable(f"{place.shown}/{_NAME} is damaged. Restore it, or use another place.") from error
