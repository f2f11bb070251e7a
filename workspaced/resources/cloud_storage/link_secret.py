"""The secret behind upload links as the database keeps it: sealed, where the service has an encryption key (contract H3)."""

from __future__ import annotations

import base64
import secrets
from typing import Final

from workspaced.security.secret_box import SecretBox
from workspaced.storage.constants import resolve_constant, rewrite_constant
from workspaced.storage.port import Transaction

_NAME: Final = "upload_link_secret"
_SEALED: Final = "sealed:"
_BYTES = 32


def kept_secret(tx: Transaction, secret_box: SecretBox) -> str:
    """As it is kept. The first start makes it, and the first start with an encryption key seals it."""
    kept = resolve_constant(tx, _NAME, "", default=_kept(secrets.token_bytes(_BYTES), secret_box))
    if secret_box.seals and not kept.startswith(_SEALED):
        kept = _kept(bytes.fromhex(kept), secret_box)
        rewrite_constant(tx, _NAME, kept)
    return kept


def opened_secret(kept: str, secret_box: SecretBox) -> bytes:
    """What links are signed with.

    Raises:
        Unavailable: it was sealed with a key that this process does not have.
    """
    if not kept.startswith(_SEALED):
        return bytes.fromhex(kept)
    return secret_box.open(base64.b64decode(kept.removeprefix(_SEALED)), purpose=_NAME)


def _kept(secret: bytes, secret_box: SecretBox) -> str:
    if not secret_box.seals:
        return secret.hex()
    return _SEALED + base64.b64encode(secret_box.seal(secret, purpose=_NAME)).decode()
