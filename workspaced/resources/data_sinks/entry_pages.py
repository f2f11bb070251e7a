"""Pages of the entries of a sink (contract DS1, G19, G27, G28, S15).

By default the response has all entries of a sink. ``take``, ``skip``, ``cursor``, ``sortedBy``, ``sortOrder`` and ``search``
select a page. They are query parameters, because any path segment below a sink can be the key of an entry.

The work for a page is bounded for sinks of any size. It reads an index from the cursor on, and examines at most
`Limits.walked_rows` entries, both for ``skip`` and for ``search``. A page of a search may therefore have fewer entries than
``take``, or none, and still have a next page. ``sortedBy=updatedAt`` has no index, and is rejected for larger sinks.
A search of values also ends after `Limits.searched_characters`, because values differ much in length. It is never counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.core.problems import Invalid
from workspaced.core.text import normalised
from workspaced.http.pagination import Cursor, Page, read_page
from workspaced.resources.data_sinks.entry_store import CHUNK_ROWS, read_id_offset
from workspaced.resources.data_sinks.sink_address import id_digits, row_number
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink
from workspaced.settings.model import Limits
from workspaced.storage.bounded_walk import Walked, walk
from workspaced.storage.port import ReadTransaction, Row
from workspaced.storage.statements import load_statements

SORTABLE: Final = frozenset({"key", "createdAt", "updatedAt"})
FORMATS: Final = ("json", "csv")
SEARCHED: Final = ("key", "value", "all")
"""What ``searchIn`` may be: keys, values, or both."""
_VALUES_STEP: Final = 2_000
"""The most entries between two looks at the length of the values that were searched."""
_SQL = load_statements("workspaced.resources.data_sinks", "entry_pages.sql")
_ORDERS = {"": "created", "key": "key", "createdAt": "created", "updatedAt": "updated"}
_ALL = 2**62
# Sorts after every key: no key begins with this number of the last code point, because PostgreSQL's index limits its length.
_AFTER_EVERY_KEY = "\U0010ffff" * 1_024
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The query of a page of entries. ``search``: ``given`` in NFC; empty: all entries. ``searched``: one of `SEARCHED`.

    ``walk``: the most entries to read; ``characters``: of values, if these are searched.
    """

    page: Page
    given: str
    search: str
    searched: str
    form: str
    walk: int
    characters: int

    @property
    def has_values(self) -> bool:
        """Whether values are searched."""
        return bool(self.search) and self.searched != "key"

    @property
    def partial(self) -> bool:
        """Whether the query selects a part of the entries, or another order."""
        return self.page.paged or bool(self.search) or bool(self.page.sorted_by) or self.page.descending

    @property
    def order(self) -> str:
        """The order of the statements: ``created``, ``key`` or ``updated``."""
        return _ORDERS[self.page.sorted_by]

    @property
    def direction(self) -> str:
        """The direction of the statements: ``asc`` or ``desc``."""
        return "desc" if self.page.descending else "asc"

    @property
    def pattern(self) -> str | None:
        """The pattern of LIKE that matches the search text literally."""
        return _pattern(self.search) if self.search else None

    @property
    def exact_pattern(self) -> str | None:
        """The pattern of the search text as given, if it is not NFC: unlike keys, values are kept as they were sent."""
        return _pattern(self.given) if self.given != self.search else None


def _pattern(text: str) -> str:
    literal = text.translate(_LOWER)
    for special in "\\%_":
        literal = literal.replace(special, "\\" + special)
    return f"%{literal}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """A page of entries; rows are in the order of `StoredEntry`. ``total`` None: not counted.

    ``records`` is an upper bound of the number of rows.
    """

    rows: Iterator[list[Row]]
    records: int
    total: int | None
    next: str


def read_listing(query: Mapping[str, str], limits: Limits) -> Listing:
    """Return the page that the query asks for. Raises Invalid: a value is out of its range."""
    page = read_page(query, longest=limits.page_length, sortable=SORTABLE, walk=limits.walked_rows)
    given = query.get("search", "")
    search = normalised(given)
    if len(search) > limits.key_length:
        raise Invalid("too_long", f"search may have {limits.key_length} characters at the most.")
    searched = query.get("searchIn", "key")
    if searched not in SEARCHED:
        raise Invalid("bad_search_in", f"searchIn must be one of {', '.join(SEARCHED)}.")
    form = query.get("format", "json")
    if form not in FORMATS:
        raise Invalid("bad_format", f"format must be {' or '.join(FORMATS)}.")
    return Listing(
        page=page,
        given=given,
        search=search,
        searched=searched,
        form=form,
        walk=limits.walked_rows,
        characters=limits.searched_characters,
    )


def read_entries(reader: ReadTransaction, sink: StoredSink, listing: Listing) -> EntryPage:
    """Read a page; without ``take``, every entry from the cursor on.

    Raises:
        Invalid: the cursor is of another order, or the sink has too many entries for the order.
    """
    page = listing.page
    large = sink.entry_count > listing.walk
    if large and listing.order == "updated":
        raise Invalid(
            "too_many_to_sort",
            f"sortedBy=updatedAt is possible up to {listing.walk} entries; this sink has {sink.entry_count}. "
            "Sort by createdAt or key.",
        )
    values = _values(reader, sink, listing)
    if listing.has_values and listing.order == "updated":
        raise Invalid("bad_sorted_by", "A search of values is possible in the order of createdAt or key.")
    total = None if listing.search and (large or listing.has_values) else _count(reader, sink, listing)
    name = f"{listing.order}_{listing.direction}"
    suffix = "_search_values" if listing.has_values else "_search"
    searched = f"{name}{suffix}" if listing.search and listing.order != "updated" else name
    if page.take is None:
        chunks = reader.chunks(_SQL[searched], {**values, "take": _ALL, "walk": _ALL}, CHUNK_ROWS)
        return EntryPage(rows=chunks, records=sink.entry_count if total is None else total, total=total, next="")
    if searched != name:
        found = _search(reader, listing, searched, values)
        rows, following = found.rows, "" if found.next_after is None else _cursor_at(reader, listing, found.next_after)
    else:
        rows = reader.all(_SQL[name], {**values, "take": page.take + 1})
        following = _cursor(reader, listing, rows[page.take - 1]) if len(rows) > page.take else ""
        del rows[page.take :]
    return EntryPage(rows=iter([rows] if rows else []), records=len(rows), total=total, next=following)


def _search(
    reader: ReadTransaction, listing: Listing, searched: str, values: Mapping[str, object]
) -> Walked[int | str]:
    """Return what the statement ``searched`` finds. A search of values also ends by the characters that it examined."""
    name = f"{listing.order}_{listing.direction}"
    characters = 0

    def matching(after: int | str, count: int, most: int) -> list[Row]:
        return reader.all(_SQL[searched], {**values, "after": after, "walk": count, "take": most, "skip": 0})

    def end(after: int | str, count: int) -> int | str | None:
        row = reader.one(_SQL[f"{name}_end"], {**values, "after": after, "walk": count - 1})
        return row[0] if row else None

    def end_of_values(after: int | str, count: int) -> int | str | None:
        nonlocal characters
        row = reader.one(_SQL[f"{name}_span"], {**values, "after": after, "walk": count})
        if row is None or row[1] < count:
            return None
        characters += int(row[2])
        return row[0]  # type: ignore[no-any-return]  # a number or a key

    start: int | str = values["after"]  # type: ignore[assignment]  # as `_values` makes it
    return walk(
        start,
        take=listing.page.take or 0,
        skip=listing.page.skip,
        most=listing.walk,
        matching=matching,
        end=end_of_values if listing.has_values else end,
        position=lambda row: _position(listing, row),
        longest_step=_VALUES_STEP if listing.has_values else None,
        is_spent=lambda: listing.has_values and characters >= listing.characters,
    )


def _position(listing: Listing, row: Row) -> int | str:
    entry = StoredEntry._make(row)
    return entry.number if listing.order == "created" else entry.key


def _count(reader: ReadTransaction, sink: StoredSink, listing: Listing) -> int:
    if listing.pattern is None:
        return sink.entry_count
    row = reader.one(_SQL["count"], {"sink": sink.number, "pattern": listing.pattern})
    return int(row[0]) if row else 0


def _values(reader: ReadTransaction, sink: StoredSink, listing: Listing) -> dict[str, object]:
    """Return the parameters of every statement of the order, except ``take`` and ``walk``."""
    page = listing.page
    values: dict[str, object] = {
        "sink": sink.number,
        "pattern": listing.pattern,
        "exact": listing.exact_pattern,
        "skip": page.skip,
        "keys": int(listing.searched == "all"),
    }
    position = page.cursor.position if page.cursor else None
    match listing.order:
        case "created":
            first = _ALL if page.descending else -1
            return {**values, "after": first if position is None else _number(reader, position)}
        case "key":
            first_key = _AFTER_EVERY_KEY if page.descending else ""
            return {**values, "after": first_key if position is None else _texts(position, 1)[0]}
        case _:
            if position is None:
                return {**values, "instant": _ALL if page.descending else -_ALL, "after": ""}
            instant, key = _texts(position, 2)
            if not (instant.isascii() and instant.isdigit() and len(instant) < 18):
                raise Cursor.refused()
            return {**values, "instant": int(instant), "after": key}


def _number(reader: ReadTransaction, position: tuple[str, ...]) -> int:
    (digits,) = _texts(position, 1)
    if len(digits) != 12 or not digits.isascii() or not all(digit in "0123456789abcdef" for digit in digits):
        raise Cursor.refused()
    return row_number(digits, id_offset=read_id_offset(reader))


def _texts(position: tuple[str, ...], count: int) -> tuple[str, ...]:
    if len(position) != count:
        raise Cursor.refused()
    return position


def _cursor(reader: ReadTransaction, listing: Listing, row: Row) -> str:
    """Return the cursor of the page that begins after an entry."""
    entry = StoredEntry._make(row)
    if listing.order == "updated":
        return listing.page.cursor_after(str(entry.updated_at), entry.key)
    return _cursor_at(reader, listing, _position(listing, row))


def _cursor_at(reader: ReadTransaction, listing: Listing, position: int | str) -> str:
    """Return the cursor after a number or a key. Numbers are encoded as in ids, which hides their order."""
    if isinstance(position, int):
        position = id_digits(position, id_offset=read_id_offset(reader))
    return listing.page.cursor_after(position)
