"""Options of the connections to the service: timeouts, proxy, trusted authorities, client certificate."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from ingestd.client.request_builder import BASE_HEADERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The longest time, in seconds, for which a part of a request may make no progress. A slow transfer continues."""

    connect_seconds: float = 5.0
    write_seconds: float = 60.0
    read_seconds: float = 60.0
    pool_seconds: float = 60.0


class UnusableCertificate(ValueError):
    """A file of certificates or its key is missing, unreadable or malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """Proxy and certificates of the connections.

    ``proxy``: ``http://…`` or ``https://…``, with user and password if it requires them. ``ca_file``: a PEM file with the
    only trusted authorities; None: the authorities of certifi. ``client_certificate`` and ``client_key``: PEM files; the
    certificate's file may contain the key. The environment of the process has no effect.
    """

    proxy: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    client_key_password: str | None = field(default=None, repr=False)

    def tls(self, url: str) -> ssl.SSLContext | bool:
        """Return the argument ``verify`` of httpx for requests to ``url``; True means the context of httpx.

        Raises:
            UnusableCertificate: a file can't be used.
        """
        if self.ca_file is None and self.client_certificate is None:
            if urlsplit(url).scheme == "http" and self.proxy is None:
                # This URL needs no TLS. Loading the trusted certificates would take longer than a request, so this context has
                # no certificates.
                return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            return True
        context = self._trusting()
        if self.client_certificate is not None:
            password = self.client_key_password
            try:
                context.load_cert_chain(self.client_certificate, self.client_key, lambda: password or "")
            except (OSError, ValueError) as error:
                files = " and ".join(str(file) for file in (self.client_certificate, self.client_key) if file)
                raise UnusableCertificate(
                    f"The client certificate can't be loaded from {files}: {_reason(error)}. It has to be PEM, with the key "
                    "that belongs to it, and with its password if the key is encrypted."
                ) from None
        return context

    def _trusting(self) -> ssl.SSLContext:
        if self.ca_file is None:
            return httpx.create_ssl_context(trust_env=False)
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:
            raise UnusableCertificate(
                f"The trusted authorities can't be loaded from {self.ca_file}: {_reason(error)}. It has to be a PEM file with "
                "at least one certificate."
            ) from None


def httpx_settings(
    url: str,
    timeouts: Timeouts | None,
    options: TransportOptions | None,
    *,
    verify: ssl.SSLContext | bool | None = None,
) -> dict[str, Any]:
    """Return the arguments of both clients of httpx, except the transport. ``verify``: the result of `TransportOptions.tls`.

    Raises:
        UnusableCertificate: a file of ``options`` can't be used.
    """
    timeouts, options = timeouts or Timeouts(), options or TransportOptions()
    return {
        "base_url": url.rstrip("/"),
        "headers": BASE_HEADERS,
        "timeout": httpx.Timeout(
            connect=timeouts.connect_seconds,
            write=timeouts.write_seconds,
            read=timeouts.read_seconds,
            pool=timeouts.pool_seconds,
        ),
        # Servers close idle connections after five seconds or more. The client closes them earlier, so that it sends no request
        # on a connection that the server closes at the same time.
        "limits": httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=3.0),
        # A redirected request would carry the API key to another server.
        "follow_redirects": False,
        # Proxies and certificates come from the configuration, not from the environment of the process.
        "trust_env": False,
        "proxy": options.proxy,
        "verify": options.tls(url) if verify is None else verify,
    }


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
