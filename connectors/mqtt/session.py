"""The stored state of a session. A kept file has its name and subscriptions, the cursor has the last messages."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping

import msgspec

from connectors.mqtt.connection import IN_FLIGHT, Received
from ingestd.sdk import Cursor, KeptFile, SourceBroken

_LONGEST = 23
"""The maximum length of a client id, in characters, that every broker accepts."""


class StoredState(msgspec.Struct):
    """The cursor. ``number``: the count of records and rejections. ``recent``: packet number and digest of last messages."""

    session: str
    number: int = 0
    recent: list[tuple[int, str]] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, cursor: Cursor | None, session: str) -> StoredState:
        """Return the state of a cursor. If the cursor belongs to another session, ``recent`` is empty.

        Raises `SourceBroken` if the cursor does not belong to this connector.
        """
        if cursor is None:
            return cls(session)
        number, recent = cursor.get("number"), cursor.get("recent")
        if not isinstance(number, int) or not isinstance(recent, list):
            raise SourceBroken(
                "The stored cursor does not belong to this connector, or a newer release wrote it. Use that release, or `ingestd"
                " cursor reset`: the broker has only messages that are not acknowledged."
            )
        if cursor.get("session") != session:
            recent = []
        known = [(int(one[0]), str(one[1])) for one in recent if isinstance(one, list | tuple) and len(one) == 2]
        return cls(session, number, known)

    def note(self, message: Received) -> None:
        """Add a message to ``recent``. The message is stored with the next cursor."""
        if message.qos:
            self.recent.append((message.packet, message.digest))
            del self.recent[:-IN_FLIGHT]

    def to_cursor(self) -> Mapping[str, object]:
        """Return the state as a cursor."""
        return {"session": self.session, "number": self.number, "recent": [list(one) for one in self.recent]}


class SessionFile:
    """The kept file of a session. ``client_id``: the name of the session at the broker.

    ``filters``: the QoS of each filter that the session may have at the broker.
    """

    def __init__(self, file: KeptFile, pipeline: str, client_id: str) -> None:
        self._file = file
        try:
            content = file.read()
            known = json.loads(content) if content is not None else {}
            name = str(known.get("client_id", ""))
            filters = {str(one): int(qos) for one, qos in known.get("filters", {}).items()}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise SourceBroken(
                f"The kept file of the session can't be read: {error}. Restore it from a backup, or remove it: then messages that"
                " wait in the former session are not read."
            ) from error
        wanted = client_id if client_id != "auto" else name or _new_id(pipeline)
        self.client_id = wanted
        self.filters: Mapping[str, int] = filters if name == wanted else {}
        if name != wanted:
            self._write()

    def keep(self, filters: Mapping[str, int]) -> None:
        """Store the filters of the session. Raise `SourceBroken` if the file can't be written."""
        if dict(filters) != self.filters:
            self.filters = dict(filters)
            self._write()

    def _write(self) -> None:
        content = json.dumps({"client_id": self.client_id, "filters": dict(sorted(self.filters.items()))})
        try:
            self._file.write(content.encode())
        except (OSError, ValueError) as error:
            raise SourceBroken(
                f"The session can't be kept beside the state file: {error}. Correct the folder's access."
            ) from error


def _new_id(pipeline: str) -> str:
    random = secrets.token_hex(5)
    return f"{re.sub('[^0-9A-Za-z]', '', pipeline)[: _LONGEST - len(random)]}{random}"
