"""Groups of keys with the same text up to a dot or slash: ``tank.`` for ``tank.mass`` and ``tank.volume``.

A seek in the index of keys finds the first key of a group, and another seek finds the first key after the group. So the cost of
a page does not depend on the size of the sink. Counts are exact only up to a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from workspaced.resources.data_sinks.entry_filters import AFTER_EVERY_KEY, before_prefix
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink
from workspaced.storage.port import ReadTransaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.data_sinks", "entry_pages.sql")
_SEPARATOR: Final = re.compile("[./]")
_COUNTED_AT_LEAST: Final = 1_000


class GroupPosition(NamedTuple):
    """A position in the order of keys: after all keys with ``prefix``, or after ``key`` if ``prefix`` is empty."""

    prefix: str
    key: str

    @property
    def text(self) -> str:
        """Return a text that sorts at this position."""
        return self.prefix + AFTER_EVERY_KEY if self.prefix else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryGroup:
    """A group of several entries with the same ``prefix``, or one ``entry``. ``exact`` False: there are more than ``count``."""

    prefix: str | None = None
    entry: StoredEntry | None = None
    count: int = 1
    exact: bool = True

    @property
    def position(self) -> GroupPosition:
        """Return the position after this group or entry."""
        return GroupPosition(prefix=self.prefix or "", key=self.entry.key if self.entry else "")


def read_groups(
    reader: ReadTransaction, sink: StoredSink, prefix: str, *, after: GroupPosition | None, take: int, counted: int
) -> tuple[list[EntryGroup], bool]:
    """Return up to ``take`` groups below a prefix in the order of keys, and whether more groups follow.

    ``counted``: about how many entries are counted for the page. The count of a group is exact up to at least 1,000.
    """
    groups: list[EntryGroup] = []
    at = after.text if after else before_prefix(prefix) if prefix else ""
    while row := reader.one(
        _SQL["next_entry"], {"sink": sink.number, "after": at, "high": f"{prefix}{AFTER_EVERY_KEY}"}
    ):
        if len(groups) == take:
            return groups, True
        group = _group_of(reader, sink, StoredEntry._make(row), prefix, most=max(counted, _COUNTED_AT_LEAST))
        counted -= group.count
        groups.append(group)
        at = group.position.text
    return groups, False


def _group_of(reader: ReadTransaction, sink: StoredSink, first: StoredEntry, prefix: str, *, most: int) -> EntryGroup:
    separator = _SEPARATOR.search(first.key, len(prefix))
    if separator is None:
        return EntryGroup(entry=first)
    name = first.key[: separator.end()]
    bounds = {"sink": sink.number, "low": before_prefix(name), "high": f"{name}{AFTER_EVERY_KEY}", "walk": most + 1}
    count = int(reader.existing(_SQL["count_range"], bounds)[0])
    if count == 1:
        return EntryGroup(entry=first)
    return EntryGroup(prefix=name, count=min(count, most), exact=count <= most)
