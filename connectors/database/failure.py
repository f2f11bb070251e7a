"""Error sentences for all kinds of databases, and the guard that prevents another login after a refused login."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ingestd.sdk import SourceBroken, first_names

_NAMED = 20


class LoginRefused(SourceBroken):
    """The database refuses the user or the password. Another attempt may lock the account."""


class LoginGuard:
    """Permits the logins of a source until the database refuses a login. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.refused: LoginRefused | None = None
        """The error of the refused login; None if no login was refused."""

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Permit one login while the context is open. Only one thread at a time can be in this context.

        Raises:
            LoginRefused: an earlier login was refused, so this login was not attempted.
        """
        with self._lock:  # without the lock, two connections that start together would cause two refused logins
            if self.refused is not None:
                raise LoginRefused(str(self.refused))
            try:
                yield
            except LoginRefused as error:
                self.refused = error
                raise

    def forget(self) -> None:
        """Permit another attempt, because an operator requested it."""
        self.refused = None


def one_line(words: object) -> str:
    """Return a driver's message as one line, without the full stop at its end."""
    return " ".join(str(words).split()).rstrip(".")


def login_refused(where: object, words: str) -> LoginRefused:
    """Return the error for a refused user or password."""
    return LoginRefused(
        f"The database {where} refuses the login: {words}. A running daemon does not try again until 'ingestd reload', so that"
        " the account is not locked. Correct url or the account."
    )


def lock_wait(where: object, seconds: float, holders: str) -> str:
    """Return a sentence about a lock that was not released in time."""
    by = f" The lock is held by {holders}." if holders else ""
    return (
        f"The database {where} can't be read because another program holds a lock for longer than {seconds:g} seconds"
        f" (lock_timeout_seconds).{by}"
    )


def existing_tables(names: Sequence[str]) -> str:
    """Return a sentence that names the existing tables, for an error about a missing table."""
    if not names:
        return " There are no tables that this user can see."
    return f" There are the tables {first_names(names, _NAMED)}."
