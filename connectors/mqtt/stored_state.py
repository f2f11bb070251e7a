"""What the cursor holds: the number of the last record, and the last messages that may not be acknowledged."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from connectors.mqtt.message import Received
from connectors.mqtt.repetition import IN_FLIGHT
from ingestd.sdk import Cursor, SourceBroken


class StoredState(msgspec.Struct):
    """``number``: records and rejections so far. ``recent``: packet number and digest of the last messages of ``session``."""

    session: str
    number: int = 0
    recent: list[tuple[int, str]] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, cursor: Cursor | None, session: str) -> StoredState:
        """Return the state of a cursor. The messages of another session are unknown to this one.

        Raises:
            SourceBroken: the cursor is not one of this connector.
        """
        if cursor is None:
            return cls(session)
        number, recent = cursor.get("number"), cursor.get("recent")
        if not isinstance(number, int) or not isinstance(recent, list):
            raise SourceBroken(
                "The stored cursor is not one of this connector, or a newer release wrote it. Use that release, or `ingestd"
                " cursor reset`: the broker has only what is not acknowledged."
            )
        if cursor.get("session") != session:
            recent = []
        known = [(int(one[0]), str(one[1])) for one in recent if isinstance(one, list | tuple) and len(one) == 2]
        return cls(session, number, known)

    def note(self, message: Received) -> None:
        """Add a message that is stored with the next cursor."""
        if message.qos:
            self.recent.append((message.packet, message.digest))
            del self.recent[:-IN_FLIGHT]

    def to_cursor(self) -> Mapping[str, object]:
        """Return the cursor."""
        return {"session": self.session, "number": self.number, "recent": [list(one) for one in self.recent]}
