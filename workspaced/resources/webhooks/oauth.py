"""Access tokens for receivers that require a token (contract H5), from client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import asyncio
import base64
import codecs
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import msgspec

from workspaced.resources.webhooks.values import OAuth
from workspaced.security.egress.client import EgressClient, ReceiverUnreachable

_EARLY_MS = 60_000
_DEFAULT_SECONDS = 300
_LONGEST_SECONDS = 86_400
_REMEMBERED = 1_000


class _TokenResponse(msgspec.Struct):
    access_token: str
    expires_in: float | str | None = None

    @property
    def seconds(self) -> float:
        """For how many seconds the token is valid. Some servers send the number as text."""
        text = self.expires_in
        if isinstance(text, str):
            seconds: float | None = float(text) if text.isascii() and text.isdecimal() else None
        else:
            seconds = text
        return _DEFAULT_SECONDS if seconds is None else min(max(seconds, 0), _LONGEST_SECONDS)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    until: int


class Tokens:
    """A cache of access tokens. A token is used until a minute before it expires."""

    def __init__(self, client: EgressClient, *, now: Callable[[], int]) -> None:
        self._client = client
        self._now = now
        self._known: dict[OAuth, _Token] = {}
        self._fetching: dict[OAuth, asyncio.Lock] = {}

    async def token(self, oauth: OAuth) -> str:
        """Return a valid token. Raises ReceiverUnreachable: the token server did not provide one."""
        # One fetch at a time, so that deliveries that start together share the token that the first delivery fetches.
        async with self._fetching.setdefault(oauth, asyncio.Lock()):
            known = self._known.get(oauth)
            if known is None or self._now() >= known.until:
                known = self._known[oauth] = await self._fresh(oauth)
            return known.text

    async def _fresh(self, oauth: OAuth) -> _Token:
        found = await self._fetch(oauth)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
            self._fetching = {known: lock for known, lock in self._fetching.items() if lock.locked()}
        return _Token(found.access_token, self._now() + int(found.seconds * 1_000) - _EARLY_MS)

    def forget(self, oauth: OAuth, token: str) -> None:
        """Remove a token that the receiver rejected; a newer token stays."""
        known = self._known.get(oauth)
        if known is not None and known.text == token:
            del self._known[oauth]

    async def _fetch(self, oauth: OAuth) -> _TokenResponse:
        # The only form of authentication that every token server must support (RFC 6749, 2.3.1).
        pair = f"{quote(oauth.client_id, safe='')}:{quote(oauth.client_secret, safe='')}"
        form = {"grant_type": "client_credentials", "scope": oauth.scope, "audience": oauth.audience}
        response = await self._client.post(
            oauth.token_url,
            headers=(
                ("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Accept", "application/json"),
            ),
            body=urlencode({name: text for name, text in form.items() if text}).encode(),
        )
        if response.status != 200:
            raise ReceiverUnreachable("no_token", f"The token server responded {response.status}.")
        try:
            found = msgspec.json.decode(response.body.removeprefix(codecs.BOM_UTF8), type=_TokenResponse)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ReceiverUnreachable("no_token", "The token server's response has no access_token.") from error
        if not found.access_token.isascii() or not found.access_token.isprintable():
            raise ReceiverUnreachable(
                "no_token", "The token server's response has no access_token of visible ASCII characters."
            )
        return found
