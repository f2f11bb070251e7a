"""Checks that a response belongs to its request, and the errors for a success with the wrong content."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from ingestd.core.normal_form import nfc


class UnreadableBody(ValueError):
    """The body of a success is HTML, incomplete, or of another shape."""


class ResponseMismatch(ValueError):
    """The body of a success has the right shape, but does not match the request."""


class KeyChanged(ResponseMismatch):
    """The service keeps the entry under another key than was sent, such as one in lower case."""


def check_key(key: str, sent: str) -> None:
    """Compare the key of a response with the key that was sent; both in NFC, because services normalize.

    Raises:
        KeyChanged: the keys differ, but the service has made one of the other.
        ResponseMismatch: they are different keys.
    """
    if nfc(key) == nfc(sent):
        return
    if _folded(key) == _folded(sent):
        raise KeyChanged(f"It has '{key}' in the place of '{sent}'.")
    raise ResponseMismatch("It names another key.")


def check_count(accounted: int, items: int) -> None:
    """Check that a response accounts for every item of a bulk request.

    Raises:
        ResponseMismatch: it accounts for more or fewer.
    """
    if accounted != items:
        raise ResponseMismatch(f"It accounts for {accounted} of {items} items.")


def check_indexes(indexes: Iterable[int], items: int) -> None:
    """Check that the results of a bulk request name each item once.

    Raises:
        ResponseMismatch: an index is missing, repeated or out of range.
    """
    found = sorted(indexes)
    if found != list(range(items)):
        raise ResponseMismatch(f"It has results for {len(found)} of {items} items.")


def check_listed(listed: Iterable[str], keys: Sequence[str]) -> None:
    """Check that a created sink lists every key that was sent.

    Raises:
        ResponseMismatch: keys are missing.
    """
    known = {nfc(key) for key in listed}
    if missing := sum(nfc(key) not in known for key in keys):
        raise ResponseMismatch(f"It lacks {missing} of {len(keys)} entries.")


def _folded(key: str) -> str:
    """Return what is left of a key when case, compatible forms and the space around it do not count."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold()).strip()


def check_sha256(sha256: str | None, sent: str) -> None:
    """Compare the digest of a stored file with the digest of the bytes that were sent.

    Raises:
        ResponseMismatch: the digests differ.
    """
    if sha256 != sent:
        raise ResponseMismatch("It has bytes of another SHA-256 than were sent.")
