"""The name of the session at the broker and its subscriptions, kept beside the state file."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping

from ingestd.sdk import KeptFile, SourceBroken

_LONGEST = 23
"""The length of a client id, in characters, that every broker accepts."""


class SessionFile:
    """``client_id`` names the session; ``filters`` are those that the broker may still have in it, with their QoS."""

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
        """Store the filters of the session.

        Raises:
            SourceBroken: the file can't be written.
        """
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
