"""Compresses the objects of shipments, and encrypts them if there is a key."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Any

from ingestd.core.errors import IngestdError
from ingestd.standby.mistake import standby_mistake

_PLAIN, _SEALED = b"\x00", b"\x01"
_NONCE_BYTES = 12
_LEVEL = 1
"""The level of the compression. A higher level takes three times as long, and saves a tenth of the size."""


class UnreadableObject(IngestdError):
    """A stored object is damaged, or was written with another key. The sentence states the object and the reason."""


class Seal:
    """Compresses and encrypts objects. ``key``: 32 bytes; None: no encryption. Decryption needs the object's name.

    Raises:
        ConfigurationError: the library of the encryption is not installed.
    """

    def __init__(self, key: bytes | None) -> None:
        self._cipher = _cipher(key) if key is not None else None
        # The digests are keyed. Otherwise another person could test by its name whether a block has a known content.
        self._naming = hashlib.blake2b(key, person=b"ingestd-names").digest() if key is not None else b""

    def digest(self, data: bytes) -> str:
        """Return a digest of a block's content, which is a part of the block's name."""
        return hashlib.blake2b(data, key=self._naming, digest_size=24).hexdigest()

    def close(self, name: str, data: bytes) -> bytes:
        """Return ``data``, compressed and encrypted, to be stored under ``name``."""
        packed = zlib.compress(data, _LEVEL)
        if self._cipher is None:
            return _PLAIN + packed
        nonce = os.urandom(_NONCE_BYTES)
        sealed: bytes = self._cipher.encrypt(nonce, packed, name.encode())
        return _SEALED + nonce + sealed

    def open(self, name: str, stored: bytes, *, most: int) -> bytes:
        """Return the content of the object ``name``, which may have at most ``most`` bytes.

        Raises:
            UnreadableObject: the object is damaged, or was written with another key.
        """
        kind, packed = stored[:1], stored[1:]
        if (kind == _SEALED) is not (self._cipher is not None) or kind not in {_PLAIN, _SEALED}:
            state = (
                "is encrypted, but standby.encryption_key is not set"
                if kind == _SEALED
                else "is not encrypted, or damaged"
            )
            raise UnreadableObject(f"{name} {state}.")
        if self._cipher is not None:
            try:
                packed = self._cipher.decrypt(packed[:_NONCE_BYTES], packed[_NONCE_BYTES:], name.encode())
            except Exception as error:  # of an optional library, which raises another error for short input
                raise UnreadableObject(
                    f"{name} is damaged, or standby.encryption_key is not the key with which it was encrypted."
                ) from error
        unpacking = zlib.decompressobj()
        try:
            data = unpacking.decompress(packed, most)
        except zlib.error as error:
            raise UnreadableObject(f"{name} is damaged.") from error
        if not unpacking.eof:
            raise UnreadableObject(f"{name} is damaged.")
        return data


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise standby_mistake(
            f"standby.encryption_key needs cryptography: install ingestd[standby] ({error})."
        ) from error
    return AESGCM(key)
