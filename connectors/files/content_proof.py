"""The proof that a file is unchanged: its status if its file system keeps the time of each change, else its content."""

from __future__ import annotations

from connectors.files.identity import Identity
from connectors.mounts import has_change_time

COMPARED_BYTES = 4 * 2**20
"""Larger files are never compared by content only because their file system keeps no time of changes."""


def is_proof(identity: Identity) -> bool:
    """Return True if an equal identity proves an equal content, or the file is too large to be compared all the time.

    The identity of a remote file has no device, and counts as a proof.
    """
    return identity.size >= COMPARED_BYTES or has_change_time(identity.device)
