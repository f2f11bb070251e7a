"""The certificate and the TLS settings of the service's listener."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

_WARNED_BEFORE: Final = timedelta(days=14)


class CertificateUnusable(Exception):
    """The files of the certificate and its key can't be used; the sentence names the file."""


class Certificate:
    """A certificate with its intermediate certificates, and the key, each in a PEM file.

    ``context`` is the TLS context for new connections.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files; log a warning if the certificate is valid for less than 14 days.

        Raises:
            CertificateUnusable: a file can't be read, has no certificate or key, or the key belongs to another certificate.
        """
        self._certificate = certificate
        self._key = key
        self.context = self._load()

    def reload(self) -> None:
        """Read the files again, for new connections. If the files can't be used, the former certificate stays in use."""
        log = structlog.get_logger()
        try:
            self.context = self._load()
        except CertificateUnusable as error:
            log.warning("certificate_not_reloaded", reason=str(error))
        else:
            log.info("certificate_reloaded", certificate=str(self._certificate))

    def _load(self) -> ssl.SSLContext:
        try:
            first = x509.load_pem_x509_certificates(_content(self._certificate))[0]
            public_key = first.public_key()
        except UnsupportedAlgorithm as error:
            sentence = f"The certificate in {self._certificate} has a key of an unsupported kind ({error})."
            raise CertificateUnusable(sentence) from None
        except ValueError:
            raise CertificateUnusable(f"The file {self._certificate} has no certificate in PEM format.") from None
        try:
            key = load_pem_private_key(_content(self._key), password=None)
        except UnsupportedAlgorithm as error:
            raise CertificateUnusable(f"The key in {self._key} is of an unsupported kind ({error}).") from None
        except TypeError:
            sentence = f"The key in {self._key} is encrypted. Give a key without a password, with mode 0600."
            raise CertificateUnusable(sentence) from None
        except ValueError:
            raise CertificateUnusable(f"The file {self._key} has no private key in PEM format.") from None
        if key.public_key() != public_key:
            raise CertificateUnusable(
                f"The key in {self._key} does not belong to the certificate in {self._certificate}."
            )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._certificate, self._key)
        except OSError as error:  # also ssl.SSLError, such as a key that is too short
            sentence = f"The certificate in {self._certificate} can't be used ({error.strerror or error})."
            raise CertificateUnusable(sentence) from None
        expires = first.not_valid_after_utc
        if expires - datetime.now(UTC) < _WARNED_BEFORE:
            structlog.get_logger().warning(
                "certificate_expires", certificate=str(self._certificate), expires=expires.isoformat()
            )
        return context


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateUnusable(f"The file {file} can't be read ({error.strerror or error}).") from None
