"""The identity that all hosts of a configuration share: the name of their writer, and the store of its lease.

The first host chooses both.
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
    """The shared identity. ``writer``: the name under which all hosts send. ``lease``: the store of the writer's lease.

    All hosts must use the same store, because two stores would have two holders.
    """

    writer: str
    lease: LeaseKind = "service"


async def shared_identity(
    place: Place, writer: str, *, choose_lease: Callable[[str], Awaitable[LeaseKind]]
) -> SharedIdentity:
    """Return the identity in a place. If there is none, store an identity with the name ``writer`` (empty: a random name).

    Raises:
        PlaceUnavailable: the place can't be used now.
        LeaseUnavailable: it is unknown now whether the service or the database can store the lease.
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
