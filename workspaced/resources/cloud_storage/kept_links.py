"""An upload link as it is kept for a repeated request (contract G18): without its signature, which is made again.

Who reads the database or a backup of it finds no link that takes bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from workspaced.core.json_body import encode
from workspaced.resources.cloud_storage.links import SIGNATURE, UploadLinks

_UNSIGNED: Final = re.compile(r"\?expires=(\d{1,20})$", re.ASCII)


class UnsignedLinks:
    """`workspaced.http.operations.SecretCipher` for the answers of upload-link; other answers are kept as they are."""

    def __init__(self, signer: UploadLinks) -> None:
        self._signer = signer

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """The answer without the signature."""
        del purpose
        record = _link_of(text)
        if record is None:
            return text
        return encode({**record, "uploadUrl": record["uploadUrl"].rpartition(SIGNATURE)[0]})

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """The answer as it was; one that an older version kept with its signature stays as it is.

        Raises:
            Unavailable: what links are signed with can't be read now.
        """
        del purpose
        record = _link_of(stored)
        unsigned = _UNSIGNED.search(record["uploadUrl"]) if record else None
        if record is None or unsigned is None:
            return stored
        # By the id that the service chose, and not by the URL, which begins with what the caller sent as Host.
        signature = self._signer.signature(record["uploadId"], unsigned[1])
        return encode({**record, "uploadUrl": f"{record['uploadUrl']}{SIGNATURE}{signature}"})


def _link_of(body: bytes) -> dict[str, Any] | None:
    """The record in an answer; None for a refusal."""
    record: dict[str, Any] = json.loads(body)
    return record if "uploadUrl" in record else None
