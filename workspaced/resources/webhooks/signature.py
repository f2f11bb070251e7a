"""Signatures by Standard Webhooks 1.0 (contract H3, H9). Performs no I/O: callers pass time and random bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
_SHORTEST, _LONGEST = 24, 64


def new_secret(random_bytes: Callable[[int], bytes]) -> str:
    """Return a new signing secret; ``random_bytes`` is `secrets.token_bytes`."""
    return PREFIX + base64.b64encode(random_bytes(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes | None:
    """Return the key in a secret; None if the text is not ``whsec_`` followed by base64 of 24 to 64 bytes."""
    if not secret.startswith(PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if _SHORTEST <= len(key) <= _LONGEST else None


def masked(secret: str) -> str:
    """Return the masked secret, for callers that may only read the webhook: its last four characters."""
    return f"{PREFIX}…{secret[-4:]}"


def signature_headers(
    event_id: str, body: bytes, *, seconds: int, secrets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the headers of an attempt at ``seconds`` since 1970, with a signature for each secret."""
    signed = f"{event_id}.{seconds}.".encode() + body
    signatures = [
        base64.b64encode(hmac.new(key_of(secret) or b"", signed, hashlib.sha256).digest()).decode()
        for secret in secrets
    ]
    return (
        ("webhook-id", event_id),
        ("webhook-timestamp", str(seconds)),
        ("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)),
    )
