"""Encryption of stored secrets (contract H3): AES-256-GCM, or plain text if the service has no key."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Final

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from workspaced.core.problems import UnavailableProblem

VARIABLE: Final = "WORKSPACED_ENCRYPTION_KEY"
LOST_VARIABLE: Final = "WORKSPACED_LOST_ENCRYPTION_KEY"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_PLAIN, _SEALED = b"\x00", b"\x01"


def encryption_key(environment: Mapping[str, str]) -> bytes | None:
    """Return the encryption key of the environment; None if the variable is not set.

    Raises:
        ValueError: the value is not 32 bytes in base64. The message does not contain the value.
    """
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(
            f"{VARIABLE} must be {_KEY_BYTES} bytes in base64; `openssl rand -base64 32` makes such a key."
        )
    return key


class SecretsSealed(UnavailableProblem):
    """A stored secret can't be read. ``key_differs``: the process has a key, but another key encrypted the secret."""

    def __init__(self, why: str, *, key_differs: bool) -> None:
        self.key_differs = key_differs
        super().__init__("secrets_sealed", f"A stored secret is encrypted and can't be read. {why}", retry_seconds=60)


class SecretBox:
    """Encrypts and decrypts secrets. A secret can be decrypted only with the ``purpose`` with which it was encrypted."""

    def __init__(self, key: bytes | None) -> None:
        self._cipher = AESGCM(key) if key else None
        self.fingerprint = hmac.digest(key, b"workspaced: fingerprint", hashlib.sha256)[:16].hex() if key else None
        """32 hexadecimal digits that identify the key, but don't reveal it; None without a key."""
        self._warned = False

    @property
    def seals(self) -> bool:
        """Return whether there is a key."""
        return self._cipher is not None

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """Return the stored form of a secret. Without a key, the stored form is plain text, and a warning is logged once."""
        if self._cipher is None:
            self._warn()
            return _PLAIN + text
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + nonce + self._cipher.encrypt(nonce, text, purpose.encode())

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """Return the secret, whether it is stored encrypted or as plain text.

        Raises:
            SecretsSealed: the secret was encrypted with a key that this process does not have.
        """
        if stored[:1] == _PLAIN:
            return stored[1:]
        if self._cipher is None:
            raise SecretsSealed(f"The service was started without {VARIABLE}.", key_differs=False)
        nonce, sealed = stored[1 : 1 + _NONCE_BYTES], stored[1 + _NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, sealed, purpose.encode())
        except InvalidTag as error:
            raise SecretsSealed(f"{VARIABLE} is not the key that encrypted it.", key_differs=True) from error

    def is_plain(self, stored: bytes) -> bool:
        """Return whether a secret is stored as plain text."""
        return stored[:1] == _PLAIN

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            structlog.get_logger().warning("secrets_stored_plainly", remedy=f"set {VARIABLE} to 32 bytes in base64")
