"""The address of a service as the fast transport uses it, without httpx, which the first request of a start need not import."""

from __future__ import annotations

from typing import Self
from urllib.parse import quote, urlsplit

import msgspec

_PORTS = {"http": 80, "https": 443}
_KEPT_IN_PATHS = "/%:@!$&'()*+,;=~"


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect, and what requests say of it.

    ``host``: a name in ASCII, or an address without brackets. ``host_header``: with the port unless it is the scheme's own.
    ``prefix``: the path below which the operations are, without a slash at its end.
    """

    tls: bool
    host: str
    port: int
    host_header: bytes
    prefix: bytes

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the address of an ``http://`` or ``https://`` URL; user and password are ignored.

        Raises:
            ValueError: it is no such URL.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address is no http:// or https:// URL with a host")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
        port = parts.port or _PORTS[parts.scheme]
        shown = f"[{host}]" if ":" in host else host
        return cls(
            tls=parts.scheme == "https",
            host=host,
            port=port,
            host_header=(shown if port == _PORTS[parts.scheme] else f"{shown}:{port}").encode("ascii"),
            prefix=quote(parts.path, safe=_KEPT_IN_PATHS).rstrip("/").encode("ascii"),
        )
