"""Pages of items, so that each transaction has a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of ``size``; the last list may be shorter."""
    remaining = iter(items)
    while page := list(islice(remaining, size)):
        yield page
