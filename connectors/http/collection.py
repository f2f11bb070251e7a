"""Collects all pages of one reading into a spool, and checks whether records may be missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from connectors.formats.ndjson.exact import LineUnreadable, parse_record
from connectors.http.exchange import PageExchange, PageResponse, Validator, display, validator_of
from connectors.http.options import HttpOptions
from connectors.http.pages import PageDocument, Paging
from connectors.http.since import NoRank, read_change
from connectors.http.spool import Spool, digest_of
from ingestd.sdk import Reject, SourceBroken, note_progress

_SHOWN_BYTES = 1000


class Faulty(msgspec.Struct, frozen=True):
    """A record that can't be used, and the digest of its text."""

    digest: str
    reject: Reject


class Collected(msgspec.Struct, kw_only=True):
    """The result of a reading. ``totals``: the different values that the pages stated as the total number of records."""

    pages: int = 0
    bytes: int = 0
    records: int = 0
    totals: set[int] = msgspec.field(default_factory=set)
    validators: list[Validator | None] = msgspec.field(default_factory=list)
    faulty: list[Faulty] = msgspec.field(default_factory=list)

    def is_complete(self, keys: Iterable[str]) -> bool:
        """Return whether all records were surely read, even if records moved between pages. ``keys``: their keys."""
        if self.pages == 1:
            return self.totals <= {self.records}
        return self.totals == {self.records} == {self._distinct(keys)}

    def fits_total(self, keys: Iterable[str]) -> bool:
        """Return whether no page states a total that differs from both the number of records and the number of keys."""
        return len(self.totals) <= 1 and self.totals <= {self.records, self._distinct(keys)}

    def _distinct(self, keys: Iterable[str]) -> int:
        return len(set(keys)) + len(self.faulty)


async def collect(
    options: HttpOptions,
    exchange: PageExchange,
    spool: Spool,
    extra: Mapping[str, str],
    *,
    first: PageResponse | None = None,
    most_pages: int | None = None,
) -> Collected:
    """Read the pages into ``spool``. ``extra``: query parameters of this reading.

    ``first``: the first page, if it was received already. ``most_pages``: the maximum number of pages to read.

    Raises:
        SourceUnavailable: a page is not available now.
        SourceBroken: a page does not fit the configuration, or a limit is exceeded.
    """
    paging, found = Paging(options), Collected()
    shown = display(options.url)
    target: str | None = paging.first(extra)
    visited: set[str] = set()
    while target is not None and (most_pages is None or found.pages < most_pages):
        if target in visited:  # otherwise pages would be requested forever
            raise SourceBroken(f"{shown} leads from a page to a page that was read already. Check page.")
        visited.add(target)
        if found.pages == options.max_pages:
            raise SourceBroken(
                f"{shown} has more than {found.pages} pages. If it sends the same page again and again, correct "
                "page; otherwise request larger pages, or set max_pages."
            )
        response = await exchange.get(target, {}) if first is None else first
        first = None
        document = PageDocument(response, options.records, odata=options.paging.type == "odata")
        before = found.records
        for text in document.records():
            found.records += 1
            _add(options, spool, found, text)
        found.pages += 1
        note_progress()
        found.bytes += len(response.body)
        if found.bytes > options.max_bytes:
            raise SourceBroken(f"{shown} sends more than {options.max_bytes} bytes in one reading (max_bytes).")
        if (total := paging.total(document)) is not None:
            found.totals.add(total)
        found.validators.append(validator_of(target, response))
        target = paging.next(target, response, document, found.records - before)
    return found


def _add(options: HttpOptions, spool: Spool, found: Collected, text: bytes) -> None:
    keys, since = options.keys, options.since
    key, change, name = "", None, ""
    try:
        if keys or since is not None:
            record = parse_record(text)
            key = _key(record, keys)
            if since is not None:
                name = since.field
                change = read_change(record.get(name))
    except LineUnreadable as error:
        found.faulty.append(_faulty(found.records, text, str(error)))
    except NoRank as error:
        words = f"{error} in the field {name}, which orders changes"
        found.faulty.append(_faulty(found.records, text, words, name))
    else:
        spool.add(text, number=found.records, page=found.pages, key=key, change=change)


def _key(record: Mapping[str, str | None], keys: Sequence[str]) -> str:
    missing = [name for name in keys if not record.get(name)]
    if missing:
        raise LineUnreadable(f"has no field {' and no field '.join(missing)}, which is part of its key")
    return ",".join(f"{name}={record[name]}" for name in keys)


def _faulty(number: int, text: bytes, words: str, name: str = "") -> Faulty:
    shown = text[:_SHOWN_BYTES].decode("utf-8", "replace")
    reject = Reject(position=f"item {number}", field=name, reason=f"Item {number} {words}.", record={"text": shown})
    return Faulty(digest_of(text), reject)
