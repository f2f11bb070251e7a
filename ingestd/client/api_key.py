"""The API key of one client. It is read again after the service rejected it, because it may have been replaced."""

from __future__ import annotations

import re
from collections.abc import Callable

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


class RenewableKey:
    """A key that every request of a client is sent with. None: the client is anonymous.

    ``read`` returns the key as it is stored now; None if it can't be read or never changes.

    Raises:
        ValueError: the key has characters that an HTTP header can't hold. The sentence does not repeat the key.
    """

    def __init__(self, api_key: str | None, *, read: Callable[[], str | None] = lambda: None) -> None:
        self._api_key = None if api_key is None else _checked(api_key)
        self._read = read
        self._rejected = False

    def current(self) -> str | None:
        """Return the key for the next request. After a 401 it is read again first."""
        if self._rejected:
            self._rejected = False
            if (api_key := self._read()) is not None:
                self._api_key = api_key
        return self._api_key

    def reject(self) -> None:
        """Record that the service responded with 401."""
        self._rejected = True


def _checked(api_key: str) -> str:
    if not _VISIBLE_ASCII.fullmatch(api_key):
        raise ValueError("The API key is empty or has characters that an HTTP header can't hold.")
    return api_key
