"""What all records have in common."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Number: TypeAlias = int | float


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of the service: a value."""


class Versioned(Record, frozen=True, kw_only=True, dict=True):
    """A record that can be read alone, and then comes with its version."""

    @property
    def etag(self) -> str:
        """The version that was read, for ``if_match`` and ``if_none_match``; empty in lists.

        It is no member of the record: two records are equal if their members are.
        """
        tag: str = self.__dict__.get("etag", "")
        return tag


def tag(record: Versioned, etag: str) -> None:
    """Note the version of a record that was just read."""
    record.__dict__["etag"] = etag
