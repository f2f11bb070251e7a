"""The credentials of requests, and the token of an OAuth 2 server."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote_plus, urlencode

import msgspec

from connectors.http.options import Auth, BasicAuth, BearerAuth, HeaderAuth, OAuthClientAuth
from ingestd.sdk import SourceBroken

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[bytes]]
"""Posts a form to an address with headers and returns the body of a successful response."""


class _IssuedToken(msgspec.Struct):
    access_token: str
    token_type: str | None = None


class RequestCredentials(msgspec.Struct):
    """Headers that carry the credentials. ``post`` reaches the authorization server."""

    auth: Auth
    post: Post
    _token: str = ""

    @property
    def is_renewable(self) -> bool:
        """Return whether `forget` may help after a refusal."""
        return isinstance(self.auth, OAuthClientAuth)

    def forget(self) -> None:
        """Have the next request fetch a new token."""
        self._token = ""

    async def headers(self) -> dict[str, str]:
        """Return the headers.

        Raises:
            SourceBroken, SourceUnavailable: the authorization server gives no token.
        """
        auth = self.auth
        if isinstance(auth, BasicAuth):
            return {"authorization": _basic(auth.user, auth.password.get_secret_value())}
        if isinstance(auth, BearerAuth):
            return {"authorization": f"Bearer {auth.token.get_secret_value()}"}
        if isinstance(auth, HeaderAuth):
            return {auth.name: auth.value.get_secret_value()}
        if isinstance(auth, OAuthClientAuth):
            self._token = self._token or await self._fetch(auth)
            return {"authorization": f"Bearer {self._token}"}
        return {}

    async def _fetch(self, auth: OAuthClientAuth) -> str:
        form = {"grant_type": "client_credentials"} | ({"scope": auth.scope} if auth.scope else {})
        headers = {
            # As the values of a form, which RFC 6749, section 2.3.1, requires: a colon or a % would else be read otherwise.
            "authorization": _basic(quote_plus(auth.client_id), quote_plus(auth.client_secret.get_secret_value())),
            "content-type": "application/x-www-form-urlencoded",
            "accept": "application/json",
        }
        body = await self.post(auth.token_url, headers, urlencode(form).encode())
        try:
            token = msgspec.json.decode(body, type=_IssuedToken)
        except msgspec.MsgspecError:
            raise SourceBroken(
                f"{auth.token_url} responded without an access token. Check token_url, client_id and client_secret."
            ) from None
        if (token.token_type or "bearer").lower() != "bearer":
            raise SourceBroken(
                f"{auth.token_url} issues tokens of the type {token.token_type!r}; only Bearer is known."
            )
        return token.access_token


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
