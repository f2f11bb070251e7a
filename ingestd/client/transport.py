"""How the service is reached: time limits, a proxy, whose certificates are trusted, and who we are to TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long each part of a request may stand still, in seconds; a slow but moving transfer is never cut."""

    connect_seconds: float = 5.0
    write_seconds: float = 60.0
    read_seconds: float = 60.0
    pool_seconds: float = 60.0

    def for_httpx(self) -> httpx.Timeout:
        """The same for httpx."""
        return httpx.Timeout(
            connect=self.connect_seconds,
            write=self.write_seconds,
            read=self.read_seconds,
            pool=self.pool_seconds,
        )


class UnusableCertificate(ValueError):
    """A file of certificates or its key is missing, unreadable or of another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """The way to the service.

    ``proxy``: ``http://…`` or ``https://…``, with user and password where it wants them. ``ca_file``: PEM, the only
    authorities trusted; None: those of certifi. ``client_certificate`` and ``client_key``: PEM; the key may stand in the
    certificate's file. ``from_environment``: let HTTP_PROXY, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and .netrc of whoever
    starts the program decide what is not said here.
    """

    proxy: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    client_key_password: str | None = field(default=None, repr=False)
    from_environment: bool = False

    def tls(self) -> ssl.SSLContext | bool:
        """What httpx takes as ``verify``; True stands for its own context.

        Raises:
            UnusableCertificate: a file can't be used.
        """
        if self.ca_file is None and self.client_certificate is None:
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
                    "that belongs to it, and with its password where it is encrypted."
                ) from None
        return context

    def _trusting(self) -> ssl.SSLContext:
        if self.ca_file is None:
            return httpx.create_ssl_context(trust_env=self.from_environment)
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ValueError) as error:
            raise UnusableCertificate(
                f"The trusted authorities can't be loaded from {self.ca_file}: {_reason(error)}. It has to be a PEM file with "
                "at least one certificate."
            ) from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
