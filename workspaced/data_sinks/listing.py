"""A stretch of a sink's entries: what DS1's query may ask for beyond the document (G19), and its answer in the database.

The document's DS1 has all entries of a sink. ``take``, ``skip``, ``sortedBy``, ``sortOrder`` and ``search`` make it a
stretch of them, which is what somebody who looks at a sink of millions wants. They are query parameters, since every word
below a sink's path can be an entry's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ingestd.process.statements import load_statements
from workspaced.data_sinks.values import StoredSink
from workspaced.problems import Invalid
from workspaced.settings import Limits
from workspaced.storage.port import Reader, Row
from workspaced.text import normalised
from workspaced.web.paging import Page, read_page

SORTABLE: Final = frozenset({"key", "createdAt", "updatedAt"})
FORMATS: Final = ("json", "csv")
_SQL = load_statements("workspaced.data_sinks", "listing.sql")
_COLUMNS = {"": "created", "key": "key", "createdAt": "created", "updatedAt": "updated"}
_CHUNK_ROWS = 1_000
_ALL = 2**62
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which entries, in which order and form. ``search`` empty: all keys."""

    page: Page
    search: str
    form: str

    @property
    def partial(self) -> bool:
        """Whether less than the document's answer, or another order, was asked for."""
        return self.page.paged or bool(self.search) or bool(self.page.sorted_by) or self.page.descending

    @property
    def pattern(self) -> str | None:
        """The search as a pattern of LIKE, in which it stands for itself."""
        if not self.search:
            return None
        literal = self.search.translate(_LOWER)
        for special in "\\%_":
            literal = literal.replace(special, "\\" + special)
        return f"%{literal}%"


def read_listing(query: Mapping[str, str], limits: Limits) -> Listing:
    """What the query asks for.

    Raises:
        Invalid: a value is out of its range.
    """
    page = read_page(query, longest=limits.page_length, sortable=SORTABLE)
    search = normalised(query.get("search", ""))
    if len(search) > limits.key_length:
        raise Invalid("too_long", f"search may have {limits.key_length} characters at the most.")
    form = query.get("format", "json")
    if form not in FORMATS:
        raise Invalid("bad_format", f"format must be {' or '.join(FORMATS)}.")
    return Listing(page=page, search=search, form=form)


def count(reader: Reader, sink: StoredSink, listing: Listing) -> int:
    """How many entries there are, of all stretches together; with a search every key is looked at."""
    if listing.pattern is None:
        return sink.entry_count
    row = reader.one(_SQL["count"], {"sink": sink.number, "pattern": listing.pattern})
    return int(row[0]) if row else 0


def chunks(reader: Reader, sink: StoredSink, listing: Listing) -> Iterator[list[Row]]:
    """The entries; rows in `StoredEntry`'s order. Those of equal instants come by key."""
    page = listing.page
    statement = _SQL[f"{_COLUMNS[page.sorted_by]}_{'desc' if page.descending else 'asc'}"]
    values = {
        "sink": sink.number,
        "pattern": listing.pattern,
        "take": page.take or _ALL,
        "skip": page.skip,
    }
    return reader.chunks(statement, values, _CHUNK_ROWS)
