"""Pages of the entries of a sink (contract DS1, G19, G27, G28, S15).

By default the response has all entries of a sink. ``take``, ``skip``, ``cursor``, ``sortedBy``, ``sortOrder`` and ``search``
select a page. They are query parameters, because any path segment below a sink can be the key of an entry.

The work for a page is limited, also in large sinks. A page reads an index from the cursor on. For ``skip``, ``search`` and
filters, it examines at most `Limits.walked_rows` entries. A page of a search may therefore have fewer entries than ``take``, or
none, and still have a next page. Only ``key`` and ``createdAt`` have an index. In a sink with more entries than the limit,
other orders are rejected, unless ``prefix`` selects a small range of keys. A search of values also ends after
`Limits.searched_characters` characters, because the lengths of values differ greatly. Its matches are never counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from workspaced.core.problems import Invalid
from workspaced.core.text import normalised
from workspaced.http.pagination import Cursor, Page, read_page
from workspaced.resources.data_sinks.entry_filters import EntryFilters, read_filters
from workspaced.resources.data_sinks.entry_store import CHUNK_ROWS, read_id_offset
from workspaced.resources.data_sinks.sink_address import id_digits, row_number
from workspaced.resources.data_sinks.values import StoredEntry, StoredSink
from workspaced.settings.model import Limits
from workspaced.storage.bounded_walk import Walked, walk
from workspaced.storage.port import ReadTransaction, Row
from workspaced.storage.statements import load_statements

_ORDERS: Final = {
    "": "created",
    "key": "key",
    "createdAt": "created",
    "updatedAt": "updated",
    "naturalKey": "natural",
    "value": "value",
    "dataType": "type",
    "updatedBy": "author",
}
_INDEXED: Final = frozenset({"created", "key"})
SORTABLE: Final = frozenset(_ORDERS.keys() - {""})
FORMATS: Final = ("json", "csv")
SEARCHED: Final = ("key", "value", "all")
"""The values of ``searchIn``: keys, values, or both."""
_VALUES_STEP: Final = 2_000
"""The maximum number of entries in one step of a search of values. After each step, the number of characters is checked."""
_SQL = load_statements("workspaced.resources.data_sinks", "entry_pages.sql")
_ALL = 2**62
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The query for a page. ``given``: the search text as sent. ``search``: this text in NFC. ``searched``: one of `SEARCHED`.

    ``walk``: the maximum number of entries to examine. ``characters``: the maximum number of characters in a search of values.
    """

    page: Page
    given: str
    search: str
    searched: str
    filters: EntryFilters
    form: str
    walk: int
    characters: int

    @property
    def has_values(self) -> bool:
        """Whether values are searched."""
        return bool(self.search) and self.searched != "key"

    @property
    def partial(self) -> bool:
        """Whether the query selects only some of the entries, or an order other than the default."""
        chosen = bool(self.search) or self.filters.given
        return self.page.paged or chosen or bool(self.page.sorted_by) or self.page.descending

    @property
    def order(self) -> str:
        """The order in the names of the statements: one of the values of `_ORDERS`."""
        return _ORDERS[self.page.sorted_by]

    @property
    def direction(self) -> str:
        """The direction in the names of the statements: ``asc`` or ``desc``."""
        return "desc" if self.page.descending else "asc"

    @property
    def pattern(self) -> str | None:
        """The LIKE pattern that matches the search text literally; None: no search."""
        return _pattern(self.search) if self.search else None

    @property
    def exact_pattern(self) -> str | None:
        """The LIKE pattern of the search text as sent; None if this text is in NFC.

        It is needed for values, which are stored as sent. Keys are stored in NFC.
        """
        return _pattern(self.given) if self.given != self.search else None


def _pattern(text: str) -> str:
    literal = text.translate(_LOWER)
    for special in "\\%_":
        literal = literal.replace(special, "\\" + special)
    return f"%{literal}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """A page of entries. The columns of ``rows`` are in the order of `StoredEntry`. ``total`` None: not counted.

    ``records``: an upper bound of the number of rows. ``next``: the cursor of the next page; empty: this is the last page.
    """

    rows: Iterator[list[Row]]
    records: int
    total: int | None
    next: str


def read_listing(query: Mapping[str, str], limits: Limits) -> Listing:
    """Return the page that the query asks for. Raises Invalid: a parameter is invalid."""
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
    filters = read_filters(query, limits)
    is_ranged = filters.least is not None or filters.most is not None
    return Listing(
        page=page,
        given=given,
        search=search,
        searched=searched,
        filters=filters,
        form=form,
        # `valueFrom` and `valueUntil` double the work for an entry, because its value is compared as a number.
        walk=max(limits.walked_rows // 2, 1) if is_ranged else limits.walked_rows,
        characters=limits.searched_characters,
    )


def read_entries(reader: ReadTransaction, sink: StoredSink, listing: Listing) -> EntryPage:
    """Read a page; without ``take``, every entry from the cursor on.

    Raises:
        Invalid: the cursor belongs to another order, or the order is not possible for this sink or this search.
    """
    page = listing.page
    values = _values(reader, sink, listing)
    records = _range_size(reader, sink, listing, values)
    large = records > listing.walk
    if listing.order not in _INDEXED:
        if large:
            raise Invalid(
                "too_many_to_sort",
                f"sortedBy={page.sorted_by} is possible up to {listing.walk} entries; this sink has {sink.entry_count}. "
                "Sort by createdAt or key, or choose fewer entries by prefix.",
            )
        if listing.has_values:
            raise Invalid("bad_sorted_by", "A search of values is possible in the order of createdAt or key.")
    is_chosen = listing.search or listing.filters.given
    total = None if is_chosen and (large or listing.has_values) else _count(reader, listing, values, records)
    name = f"{listing.order}_{listing.direction}"
    searched = f"{name}{_suffix(listing)}"
    if page.take is None:
        chunks = reader.chunks(_SQL[searched], {**values, "take": _ALL, "walk": _ALL}, CHUNK_ROWS)
        return EntryPage(rows=chunks, records=records if total is None else total, total=total, next="")
    if searched != name:
        found = _search(reader, listing, searched, values)
        rows, following = found.rows, "" if found.next_after is None else _cursor_at(reader, listing, found.next_after)
    else:
        rows = reader.all(_SQL[name], {**values, "take": page.take + 1})
        following = _cursor(reader, listing, values, rows[page.take - 1]) if len(rows) > page.take else ""
        del rows[page.take :]
    return EntryPage(rows=iter([rows] if rows else []), records=len(rows), total=total, next=following)


def _range_size(reader: ReadTransaction, sink: StoredSink, listing: Listing, values: Mapping[str, object]) -> int:
    """Return an upper bound of the number of entries with the prefix. They are counted only up to ``walk`` + 1."""
    if not listing.filters.prefix or sink.entry_count <= listing.walk:
        return sink.entry_count
    return int(reader.existing(_SQL["count_range"], {**values, "walk": listing.walk + 1})[0])


def _suffix(listing: Listing) -> str:
    """Return the name suffix of the statement for a search or filter in index order, ``_filter`` or ``_search``; else empty."""
    if listing.order not in _INDEXED:
        return ""
    if listing.filters.given or listing.has_values:
        return "_filter"
    return "_search" if listing.search else ""


def _search(
    reader: ReadTransaction, listing: Listing, searched: str, values: Mapping[str, object]
) -> Walked[int | str]:
    """Return the page that the statement ``searched`` finds. A search of values also ends at the limit of characters."""
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

    start: int | str = values["after"]  # type: ignore[assignment]  # `_values` sets it
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


def _count(reader: ReadTransaction, listing: Listing, values: Mapping[str, object], records: int) -> int:
    if listing.filters.given:
        return int(reader.existing(_SQL["count_filter"], values)[0])
    return int(reader.existing(_SQL["count"], values)[0]) if listing.search else records


def _values(reader: ReadTransaction, sink: StoredSink, listing: Listing) -> dict[str, object]:
    """Return the parameters of the statements for the order of ``listing``, except ``take`` and ``walk``."""
    page = listing.page
    values: dict[str, object] = {
        "sink": sink.number,
        "pattern": listing.pattern,
        "exact": listing.exact_pattern,
        "skip": page.skip,
        "keys": int(listing.searched != "value"),
        "texts": int(listing.searched != "key"),
        **listing.filters.values,
    }
    position = page.cursor.position if page.cursor else None
    match listing.order:
        case "created":
            first = _ALL if page.descending else -1
            return {**values, "after": first if position is None else _number(reader, position)}
        case "key":
            low, high = listing.filters.low, listing.filters.high
            first_key, bound = (high, low) if page.descending else (low, high)
            return {**values, "bound": bound, "after": first_key if position is None else _texts(position, 1)[0]}
        case "updated":
            if position is None:
                return {**values, "instant": _ALL if page.descending else -_ALL, "after": ""}
            instant, key = _texts(position, 2)
            return {**values, "instant": _whole(instant), "after": key}
        case _:
            return values if position is None else {**values, "skip": _whole(_texts(position, 1)[0])}


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise Cursor.refused()
    return int(text)


def _number(reader: ReadTransaction, position: tuple[str, ...]) -> int:
    (digits,) = _texts(position, 1)
    if len(digits) != 12 or not digits.isascii() or not all(digit in "0123456789abcdef" for digit in digits):
        raise Cursor.refused()
    return row_number(digits, id_offset=read_id_offset(reader))


def _texts(position: tuple[str, ...], count: int) -> tuple[str, ...]:
    if len(position) != count:
        raise Cursor.refused()
    return position


def _cursor(reader: ReadTransaction, listing: Listing, values: Mapping[str, Any], row: Row) -> str:
    """Return the cursor of the page that begins after an entry.

    In the orders by natural key, value, data type and author, the cursor is the number of entries before the page.
    """
    entry = StoredEntry._make(row)
    if listing.order == "updated":
        return listing.page.cursor_after(str(entry.updated_at), entry.key)
    if listing.order not in _INDEXED:
        return listing.page.cursor_after(str(values["skip"] + (listing.page.take or 0)))
    return _cursor_at(reader, listing, _position(listing, row))


def _cursor_at(reader: ReadTransaction, listing: Listing, position: int | str) -> str:
    """Return the cursor after a number or a key. A number is encoded as in the ids of entries, which hides its size."""
    if isinstance(position, int):
        position = id_digits(position, id_offset=read_id_offset(reader))
    return listing.page.cursor_after(position)
