"""The fingerprint of the encryption key in the database. It ensures that all hosts use the same key (contract H3)."""

from __future__ import annotations

from typing import Final

from workspaced.security.secret_box import LOST_VARIABLE, VARIABLE, SecretBox
from workspaced.storage.constants import find_constant, replace_constant
from workspaced.storage.port import StorageUnusable, Transaction

_CONSTANT: Final = "encryption_key"
_NONE: Final = "none"


def require_same_key(tx: Transaction, secret_box: SecretBox, *, lost: str) -> bool:
    """Compare the key with the fingerprint in the database; return whether the key replaced a lost key.

    The first start with a key stores its fingerprint. ``lost`` is the fingerprint of a key that the operator does not have any
    more; empty: no key is lost.

    Raises:
        StorageUnusable: the database has the fingerprint of a different key.
        UnavailableProblem: another host has just recorded its key.
    """
    before = find_constant(tx, _CONSTANT)
    recorded, mine = before or _NONE, secret_box.fingerprint or _NONE
    if recorded == mine:
        return False
    if recorded not in {_NONE, lost}:
        has = f"has the fingerprint {mine}" if secret_box.seals else "is not set"
        raise StorageUnusable(
            f"{VARIABLE} {has}, but the secrets of this database are encrypted with the key {recorded}. Start this "
            f"host with the key of the other hosts. If that key is lost, start all hosts with a new key and "
            f"{LOST_VARIABLE}={recorded}; the secrets of webhooks must then be entered again."
        )
    replace_constant(tx, _CONSTANT, before, mine)
    return recorded != _NONE
