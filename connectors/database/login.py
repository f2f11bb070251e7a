"""The memory of a refused login, shared by all connections of one source."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.database.failure import LoginRefused


class LoginGuard:
    """Lets connections log in until the database refuses one: another attempt may lock the account. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.refused: LoginRefused | None = None
        """The refusal; None if there was none."""

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Log in while the context is open, one connection at a time.

        Raises:
            LoginRefused: an earlier login was refused, and nothing was tried.
        """
        with self._lock:  # two connections that begin together are one refused login, not two
            if self.refused is not None:
                raise LoginRefused(str(self.refused))
            try:
                yield
            except LoginRefused as error:
                self.refused = error
                raise

    def forget(self) -> None:
        """Permit another attempt; an operator requested it."""
        self.refused = None
