"""The secret behind upload links as the database keeps it: sealed, where the service has an encryption key (H3)."""

from __future__ import annotations

import base64
import secrets
from typing import Final

from workspaced.sealing import Vault
from workspaced.storage.fixed import fixed, keep_otherwise
from workspaced.storage.port import Transaction

_NAME: Final = "upload_link_secret"
_SEALED: Final = "sealed:"
_BYTES = 32


def kept_secret(tx: Transaction, vault: Vault) -> str:
    """As it is kept. The first start makes it, and the first start with an encryption key seals it."""
    kept = fixed(tx, _NAME, "", default=_kept(secrets.token_bytes(_BYTES), vault))
    if vault.seals and not kept.startswith(_SEALED):
        kept = _kept(bytes.fromhex(kept), vault)
        keep_otherwise(tx, _NAME, kept)
    return kept


def opened_secret(kept: str, vault: Vault) -> bytes:
    """What links are signed with.

    Raises:
        Unavailable: it was sealed with a key that this process does not have.
    """
    if not kept.startswith(_SEALED):
        return bytes.fromhex(kept)
    return vault.open(base64.b64decode(kept.removeprefix(_SEALED)), purpose=_NAME)


def _kept(secret: bytes, vault: Vault) -> str:
    if not vault.seals:
        return secret.hex()
    return _SEALED + base64.b64encode(vault.seal(secret, purpose=_NAME)).decode()
