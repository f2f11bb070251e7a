"""What can be done to a request instead of answering it as the document says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Answer with a status and do nothing."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error":"Told to fail"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBefore:
    """Close the connection before anything was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAfter:
    """Do what was asked, durably, and close the connection instead of answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Do what was asked and answer so many seconds later."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """Do nothing and answer with a body that a proxy might give."""

    status: int = 200
    body: bytes = b"<html><body>Please sign in</body></html>"
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """Do what was asked, promise the whole answer, send half of it and close the connection."""


Fault: TypeAlias = Refuse | DropBefore | DropAfter | Delay | Garbage | Truncate
