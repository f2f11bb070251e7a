"""Errors of a database as sentences, for all kinds of databases."""

from __future__ import annotations

from collections.abc import Sequence

from ingestd.sdk import SourceBroken

_NAMED = 20


class LoginRefused(SourceBroken):
    """The database refuses the user or the password. Another attempt may lock the account."""


def one_line(words: object) -> str:
    """Return a driver's message on one line without its full stop."""
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
    """Return a sentence with the existing tables, for an error about a missing one."""
    if not names:
        return " There are no tables that this user can see."
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" There are the tables {', '.join(names[:_NAMED])}{more}."
