"""The base classes of all records."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Number: TypeAlias = int | float


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of the service."""


class Versioned(Record, frozen=True, kw_only=True, dict=True):
    """A record that has a version when it is read alone."""

    @property
    def etag(self) -> str:
        """The version, for ``if_match`` and ``if_none_match``; empty in lists. Equality of records ignores it."""
        tag: str = self.__dict__.get("etag", "")
        return tag


def tag(record: Versioned, etag: str) -> None:
    """Set the version of a record that was just read."""
    record.__dict__["etag"] = etag


class ProblemError(Record, frozen=True, kw_only=True):
    """One error in a request; ``pointer`` is a JSON Pointer into the request's body."""

    pointer: str
    code: str
    detail: str
