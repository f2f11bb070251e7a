"""Links by which bytes may be sent without an API key: signed, for one upload, for a quarter of an hour (contract C1). Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from workspaced.core.problems import Problem, UnavailableProblem

PATH: Final = "/v1/cloud-storage/upload"
SIGNATURE: Final = "&signature="


class LinkRefused(Problem):
    """The link was not made here, or its time is over."""

    status = 403
    title = "Forbidden"


class UploadLinks:
    """Makes and checks links. The secret is the database's, so that several processes agree; `settle` tells how to get it."""

    def __init__(self) -> None:
        self._secret: Callable[[], bytes] = _not_yet

    def settle(self, secret: Callable[[], bytes]) -> None:
        """Go by what this returns from now on. It may raise Unavailable, where the secret is sealed with another key."""
        self._secret = secret

    def link(self, base_url: str, *, upload_id: str, expires_at: int) -> str:
        """The URL for an upload; ``expires_at`` is milliseconds since 1970."""
        signature = self.signature(upload_id, str(expires_at))
        return f"{base_url}{PATH}/{upload_id}?expires={expires_at}{SIGNATURE}{signature}"

    def require_signed(self, query: Mapping[str, str], *, upload_id: str, now: int) -> None:
        """Let a link of ours pass while it lasts.

        Raises:
            LinkRefused: it is not ours, or too old.
        """
        expires = query.get("expires", "")
        expected = self.signature(upload_id, expires)
        if not hmac.compare_digest(query.get("signature", "").encode(), expected.encode()):
            raise LinkRefused("bad_upload_link", "This upload link was not made by this service.")
        if now >= int(expires):
            raise LinkRefused("upload_link_expired", "The time of this upload link is over: ask for another one.")

    def signature(self, upload_id: str, expires: str) -> str:
        """Return what a link of this upload ends with; ``expires`` is the text in the link.

        Raises:
            UnavailableProblem: what links are signed with can't be read now.
        """
        digest = hmac.new(self._secret(), f"PUT\n{upload_id}\n{expires}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _not_yet() -> bytes:
    raise UnavailableProblem("starting", "The service is starting.")
