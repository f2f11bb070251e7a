"""The headers and the query of a request, and the address and scheme of its client, also through trusted proxies."""

from __future__ import annotations

from functools import lru_cache
from typing import overload
from urllib.parse import parse_qsl

from ingestd.process.request_headers import RepeatedHeader, single_values
from workspaced.core.asgi import Scope
from workspaced.core.problems import Invalid
from workspaced.security.trusted_proxies import Proxies


class RequestHeaders:
    """The headers of a request in a dictionary, because about ten names are looked up for each request.

    Several lines of one header are joined in their order (`ingestd.process.request_headers`).
    """

    def __init__(self, scope: Scope) -> None:
        raw: list[tuple[bytes, bytes]] = list(scope["headers"])
        self._fault = ""
        self._values: dict[bytes, bytes] = dict(raw)
        if len(self._values) < len(raw):
            try:
                self._values = single_values(raw)
            except RepeatedHeader as repeated:
                self._fault = str(repeated)

    def require_single(self) -> None:
        """Check that no header with a single value occurs twice (contract G29).

        Raises:
            Invalid: such a header occurs twice.
        """
        if self._fault:
            raise Invalid("malformed_request", self._fault)

    def __contains__(self, key: str, /) -> bool:
        return _wire_name(key) in self._values

    def __getitem__(self, key: str, /) -> str:
        """Return the header's value.

        Raises:
            KeyError: there is no such header.
        """
        return self._values[_wire_name(key)].decode("latin-1")

    @overload
    def get(self, key: str, /) -> str | None: ...

    @overload
    def get(self, key: str, default: str, /) -> str: ...

    def get(self, key: str, default: str | None = None, /) -> str | None:
        """Return the header's value, or the default."""
        found = self._values.get(_wire_name(key))
        return default if found is None else found.decode("latin-1")


@lru_cache(maxsize=256)
def _wire_name(key: str) -> bytes:
    """Return a header's name in the form of ASGI. The results are cached, because the service uses a fixed set of names."""
    return key.lower().encode("latin-1")


def client_address(scope: Scope, headers: RequestHeaders, proxies: Proxies) -> str:
    """Return the client's address, from the connection or a trusted proxy; empty if the server does not know it."""
    return proxies.caller(_peer(scope), headers.get("X-Forwarded-For"))


def client_scheme(scope: Scope, headers: RequestHeaders, proxies: Proxies) -> str:
    """Return the scheme, http or https, that the client used."""
    forwarded = headers.get("X-Forwarded-For"), headers.get("X-Forwarded-Proto")
    return proxies.scheme(_peer(scope), *forwarded, own=scope["scheme"])


def query_of(scope: Scope) -> dict[str, str]:
    """Return the query's parameters; if a parameter occurs several times, its last value.

    Raises:
        Invalid: an escape is not UTF-8, or a value contains U+0000.
    """
    return dict(query_items_of(scope))


def query_items_of(scope: Scope) -> list[tuple[str, str]]:
    """Return all names and values of the query.

    Raises:
        Invalid: an escape is not UTF-8, or a value contains U+0000.
    """
    raw: bytes = scope["query_string"]
    try:
        query = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="strict") if raw else []
    except UnicodeDecodeError:
        raise Invalid("bad_query", "An escape of the query is not UTF-8.") from None
    if any("\0" in value for _, value in query):
        raise Invalid("nul_character", "The query may not contain the character U+0000.")
    return query


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
