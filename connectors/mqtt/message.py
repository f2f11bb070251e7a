"""A message as it arrived, with the connection on which it must be acknowledged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from connectors.mqtt.connection import BrokerConnection


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a topic.

    ``facts``: those of its topic; None: it is acknowledged and not read. ``payload``: its content, or the first bytes if
    ``size`` is larger than the limit. ``arrived``: seconds of the source's clock. ``packet``: its number at the broker while it
    is not acknowledged; meaningless for ``qos`` 0. ``repeated``: the broker may have sent it before.
    """

    connection: BrokerConnection
    packet: int
    qos: int
    repeated: bool
    topic: str
    facts: Mapping[str, str] | None
    payload: bytes
    size: int
    arrived: float

    @property
    def digest(self) -> str:
        """Return what distinguishes two messages with one packet number."""
        found = hashlib.blake2b(self.topic.encode("utf-8", "surrogateescape"), digest_size=8)
        found.update(b"\0%d\0" % self.size)
        found.update(self.payload)
        return found.hexdigest()

    def acknowledge(self) -> None:
        """Acknowledge the message on its own connection; nothing happens if that has ended."""
        if self.qos:
            self.connection.acknowledge(self.packet, self.qos)
