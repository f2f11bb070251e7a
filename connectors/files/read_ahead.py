"""Reading ahead: the next item is made while the caller works with the current one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the items; each following one is made in another thread meanwhile. At most one waits.

    An exception of ``items`` reaches the caller in its place. When this generator is closed, no item is being made any more.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item
