"""Requests to one service with the configured credentials. Time and size of each response are limited."""

from __future__ import annotations

import asyncio
import base64
import codecs
import email.utils
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote_plus, urljoin, urlsplit

import httpx
import msgspec

from connectors.http.options import BasicAuth, BearerAuth, HeaderAuth, HttpOptions, OAuthClientAuth
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.sdk.tls import describe, find_tls_error, tls_fault

Validator: TypeAlias = Mapping[str, str]
"""A validator of a page: ``target`` (its URL without secrets), and ``etag`` or ``modified`` (its header Last-Modified)."""

PAGE_BYTES = 64 * 2**20
"""The maximum size of an uncompressed page, in bytes."""

_APART_SECONDS = 60
"""The minimum age of a usable Last-Modified time. A younger page may change in the same second (RFC 9110, 8.8.2.2)."""
_REDIRECTS = 5
_WAITS = 3
_LONGEST_WAIT_SECONDS = 60.0
_SLOW_TIMES = 10
_TOKEN_BYTES = 2**20
_REFUSED = {401, 403}
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


class AccessRefused(SourceBroken):
    """The service refused the credentials. Another attempt may lock the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResponse:
    """A response. With ``status`` 304 it has no page. ``url``: has no secrets. ``headers``: by lower-case name."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)


class _IssuedToken(msgspec.Struct):
    access_token: str
    token_type: str | None = None


class PageExchange:
    """Requests pages of the service. Until `close`, all requests must be in one event loop."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._origin = origin(options.url)
        self._token = ""
        """The token of the OAuth 2 server; empty: the next request fetches a token."""
        self._client: httpx.AsyncClient | None = None

    async def get(self, url: str, conditions: Mapping[str, str]) -> PageResponse:
        """Request ``url``, and add the configured parameters that it lacks. ``conditions``: headers such as If-None-Match.

        If the service requests a wait (Retry-After) of at most one minute, wait and repeat the request, up to three times.

        Raises:
            SourceUnavailable: the service does not respond now, or responds without a page of data.
            AccessRefused: the service refuses the credentials.
            SourceBroken: the address is wrong, or belongs to another service.
        """
        renewed = False
        waits = redirects = 0
        while True:
            self.check_origin(url)
            response = await self._request(url, conditions)
            if response.status == 401 and self._token and not renewed:
                self._token = ""
                renewed = True
            elif (wait := _retry_after(response)) is not None and wait <= _LONGEST_WAIT_SECONDS and waits < _WAITS:
                waits += 1
                await asyncio.sleep(wait)
            elif response.status in {301, 302, 303, 307, 308} and redirects < _REDIRECTS:
                redirects += 1
                url = urljoin(url, response.headers.get("location", ""))
            else:
                return _checked(response)

    def check_origin(self, url: str) -> None:
        """Raise `SourceBroken` if the address belongs to another service, which must not get the credentials."""
        if origin(url) != self._origin:
            other, own = ("://".join(one[:2]) + f":{one[2]}" for one in (origin(url), self._origin))
            raise SourceBroken(
                f"{display(self._options.url)} refers to {other}, which is not {own}. Nothing was sent there. "
                "If that other address is right, set url to it."
            )

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _request(self, url: str, conditions: Mapping[str, str]) -> PageResponse:
        options = self._options
        headers = {name: value.get_secret_value() for name, value in options.headers.items()}
        headers |= {"accept": "application/json", "accept-encoding": "gzip", **conditions}
        headers |= await self._credentials()
        # If the link to the next page has a value for a configured parameter, such as a page number, this value is kept.
        configured = httpx.QueryParams({name: value.get_secret_value() for name, value in options.params.items()})
        params = configured.merge(httpx.URL(url).params)
        request = self._opened().build_request("GET", httpx.URL(url).copy_with(params=params), headers=headers)
        return await self._send(request, display(url), PAGE_BYTES)

    async def _credentials(self) -> dict[str, str]:
        """Return the headers with the credentials. Fetch an OAuth 2 token if none is known."""
        match self._options.auth:
            case BasicAuth(user=user, password=password):
                return {"authorization": _basic(user, password.get_secret_value())}
            case BearerAuth(token=token):
                return {"authorization": f"Bearer {token.get_secret_value()}"}
            case HeaderAuth(name=name, value=value):
                return {name: value.get_secret_value()}
            case OAuthClientAuth() as client:
                self._token = self._token or await self._fetch_token(client)
                return {"authorization": f"Bearer {self._token}"}
        return {}

    async def _fetch_token(self, auth: OAuthClientAuth) -> str:
        form = {"grant_type": "client_credentials"} | ({"scope": auth.scope} if auth.scope else {})
        headers = {
            # RFC 6749, section 2.3.1, requires form encoding: a server would misread a colon or % that is not encoded.
            "authorization": _basic(quote_plus(auth.client_id), quote_plus(auth.client_secret.get_secret_value())),
            "accept": "application/json",
        }
        url = auth.token_url
        request = self._opened().build_request("POST", url, headers=headers, data=form)
        response = await self._send(request, display(url), _TOKEN_BYTES)
        if response.status in {400, *_REFUSED}:
            raise AccessRefused(
                f"{display(url)} refuses the client (status {response.status}). Check client_id and client_secret."
            )
        try:
            token = msgspec.json.decode(_checked(response).body, type=_IssuedToken)
        except msgspec.MsgspecError:
            raise SourceBroken(
                f"{url} responded without an access token. Check token_url, client_id and client_secret."
            ) from None
        if (token.token_type or "bearer").lower() != "bearer":
            raise SourceBroken(f"{url} issues tokens of the type {token.token_type!r}; only Bearer is known.")
        return token.access_token

    async def _send(self, request: httpx.Request, shown: str, most: int) -> PageResponse:
        timeout = self._options.timeout_seconds
        try:
            async with asyncio.timeout(timeout * _SLOW_TIMES):
                response = await self._opened().send(request, stream=True)
                try:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    body = b"" if response.status_code == 304 else await _read(response, shown, most)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise SourceUnavailable(f"{shown} did not send a page within {timeout * _SLOW_TIMES:g} seconds.") from None
        except httpx.TimeoutException:
            raise SourceUnavailable(f"{shown} did not respond within {timeout:g} seconds (timeout_seconds).") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise SourceUnavailable(f"{shown} can't be reached: {_words(error)}") from None
        return PageResponse(url=shown, status=response.status_code, headers=headers, body=body)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            options = self._options
            secure = options.url.startswith("https:") or getattr(options.auth, "token_url", "").startswith("https:")
            try:
                trusted = ssl.create_default_context(cafile=options.ca_file) if secure else False
            except OSError as error:
                raise SourceBroken(f"The certificates of {options.ca_file} can't be read: {error}.") from error
            self._client = httpx.AsyncClient(
                verify=trusted,
                timeout=options.timeout_seconds,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=2),
                trust_env=False,  # a proxy of the environment would get the credentials
            )
        return self._client


def validator_of(target: str, response: PageResponse) -> Validator | None:
    """Return the validator of a page; None if the service sends no reliable validator."""
    etag = response.headers.get("etag", "").strip()
    if etag:
        return {"target": target, "etag": etag}
    modified, now = (response.headers.get(name, "") for name in ("last-modified", "date"))
    then, at = (email.utils.parsedate_tz(text) for text in (modified, now))
    if then is None or at is None or email.utils.mktime_tz(at) - email.utils.mktime_tz(then) < _APART_SECONDS:
        return None
    return {"target": target, "modified": modified}


def conditions(validator: Validator) -> dict[str, str]:
    """Return request headers with which the service sends the page only if it has changed."""
    if "etag" in validator:
        return {"if-none-match": validator["etag"]}
    return {"if-modified-since": validator["modified"]}


def display(url: str) -> str:
    """Return a URL for messages: without its query, which may have secrets."""
    return url.split("?", 1)[0]


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme.lower(), (parts.hostname or "").lower(), port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def _read(response: httpx.Response, shown: str, most: int) -> bytes:
    """Return the uncompressed body without a byte order mark. Each piece is checked, so that memory stays limited."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"identity", "gzip", "x-gzip"}:
        raise SourceBroken(f"{shown} sends its pages as {coding!r} although only gzip was offered.")
    unpacking = zlib.decompressobj(wbits=31) if coding != "identity" else None
    body = bytearray()
    pieces: AsyncIterator[bytes] = response.aiter_raw()
    async for piece in pieces:
        if unpacking is None:
            body += piece
        else:
            try:
                body += unpacking.decompress(piece, most + 1 - len(body))
            except zlib.error as error:
                raise SourceUnavailable(f"{shown} sent a packed page that can't be unpacked: {error}.") from None
        if len(body) > most:
            raise SourceBroken(f"{shown} sends a page with more than {most} bytes. Request smaller pages (page: size).")
    if unpacking is not None and not unpacking.eof:
        raise SourceUnavailable(f"{shown} sent a packed page that ends early.")
    if unpacking is not None and unpacking.unused_data:
        raise SourceBroken(
            f"{shown} sent a packed page that continues after its end. Only one gzip member can be read."
        )
    return bytes(body.removeprefix(codecs.BOM_UTF8))


def _checked(response: PageResponse) -> PageResponse:
    status, url = response.status, response.url
    if status == 304:
        return response
    if status in _REFUSED:
        raise AccessRefused(
            f"{url} refuses the credentials (status {status}). Check auth and the rights of the account."
        )
    if status in _TRANSIENT:
        wait = _retry_after(response) or 0.0
        hint = f" It asks for a wait of {wait:.0f} seconds." if wait else ""
        raise SourceUnavailable(f"{url} responded with status {status}.{hint}", retry_after=wait)
    if 300 <= status < 400:
        raise SourceBroken(
            f"{url} redirects (status {status}) more than {_REDIRECTS} times, or to no address. Check url and auth: it may expect"
            " a login in a browser."
        )
    if status != 200:
        raise SourceBroken(f"{url} responded with status {status}. Check url, params and page.")
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind in {"text/html", "application/xhtml+xml"} or response.body.lstrip()[:1] == b"<":
        raise SourceUnavailable(
            f"{url} responded with an HTML page ({kind or 'no type'}) instead of JSON: probably a login page. Check auth."
        )
    return response


def _retry_after(response: PageResponse) -> float | None:
    """Return the seconds that the service asks the client to wait (Retry-After); None if it does not ask."""
    if response.status not in {429, 503}:
        return None
    text = response.headers.get("retry-after", "").strip()
    if text.isdigit() and len(text) < 9:
        wait = float(text)
    else:
        at, now = (email.utils.parsedate_tz(one) for one in (text, response.headers.get("date", "")))
        if at is None or now is None:
            return None
        wait = float(email.utils.mktime_tz(at) - email.utils.mktime_tz(now))
    return max(0.0, wait)


def _words(error: Exception) -> str:
    if (of_tls := find_tls_error(error)) is not None:
        detail = getattr(of_tls, "verify_message", "") or of_tls.reason or ""
        return describe(tls_fault(of_tls), detail=detail, trust="name its file as ca_file")
    return f"{(str(error) or type(error).__name__).rstrip('.')}."
