"""JSON pages: the exact text of each record, and the URL of the next page for each type of paging."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final
from urllib.parse import urljoin

import httpx
import msgspec

from connectors.formats.json.reader import Items
from connectors.formats.text import open_text
from connectors.http.exchange import PageResponse
from connectors.http.options import HttpOptions, PagingOptions
from ingestd.sdk import SourceBroken, SourceUnavailable

ODATA_NEXT: Final = ("@odata.nextLink", "odata.nextLink", "d.__next")
ODATA_TOTAL: Final = ("@odata.count", "odata.count", "d.__count")
_NEXT: Final = (
    *ODATA_NEXT, "next", "links.next", "links.next.href", "_links.next.href", "_links.next", "paging.next", "pagination.next",
    "meta.next", "next_page_url", "nextLink", "nextPageUrl",
)  # fmt: skip
_TOKENS: Final = tuple(
    f"{before}{name}"
    for before in ("", "meta.", "paging.", "pagination.", "response_metadata.", "page_info.", "pageInfo.")
    for name in ("nextPageToken", "next_page_token", "nextCursor", "next_cursor", "nextToken", "next_token")
)
_MORE: Final = tuple(
    f"{before}{name}"
    for before in ("", "meta.", "paging.", "pagination.", "page_info.", "pageInfo.")
    for name in ("has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage")
)
"""Members that say that there is another page, and not where it is."""
_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[^;,"]+(?:"[^"]*")?[^;,"]*)*)')
_REL = re.compile(r';\s*rel\s*=\s*"?([^";]*)"?', re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|[/?]")


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCALAR = msgspec.json.Decoder(str | int | float | bool | None)
_ODATA_RECORDS = ("value", "d.results", "d")


class PageDocument:
    """The body of a page. ``records``: the path of the array of records; empty: the whole document, or OData's array."""

    def __init__(self, response: PageResponse, records: str, *, odata: bool = False) -> None:
        self._response = response
        self._path = records
        if odata and not records:
            self._path = next((path for path in _ODATA_RECORDS if self._is_array(path)), "value")

    def records(self) -> Iterator[bytes]:
        """Yield the JSON text of each record.

        Raises:
            SourceUnavailable: the body is empty.
            SourceBroken: the body is not JSON, is truncated, or has no array at the path of the records.
        """
        first = self._response.body.lstrip()[:1]
        if not first:
            raise SourceUnavailable(f"{self._response.url} responded with an empty page.")
        if first not in {b"{", b"["}:
            raise SourceBroken(
                f"{self._response.url} responded with text that is neither an object nor an array of JSON."
            )
        text = open_text(io.BytesIO(self._response.body), "utf-8")
        yield from Items(text, self._response.url, self._path.split(".") if self._path else ())

    def text(self, path: str) -> str | None:
        """Return a member that is a text or a number, as its exact text; None if it is missing or of another type."""
        raw = self._raw(path)
        if raw is None:
            return None
        try:
            value = _SCALAR.decode(raw)
        except msgspec.DecodeError:
            return None
        if value is None or isinstance(value, bool):
            return None
        return value if isinstance(value, str) else bytes(raw).decode()

    def is_true(self, path: str) -> bool:
        """Return whether a member is ``true``."""
        return self._json(path) == b"true"

    def is_filled(self, path: str) -> bool:
        """Return whether a member is neither missing nor empty nor ``false``."""
        return self._json(path) not in {b"", b"null", b"false", b'""', b"{}", b"[]"}

    def number(self, path: str) -> int | None:
        """Return a member that is a count; None if the member is missing or not a count."""
        text = self.text(path)
        return int(text) if text is not None and text.isdecimal() and len(text) < 16 else None

    def _raw(self, path: str) -> msgspec.Raw | None:
        """Return the JSON text of the member at ``path``. Names with dots, such as ``@odata.count``, are found, too."""
        return _member(self._members, path.split("."))

    @cached_property
    def _members(self) -> Mapping[str, msgspec.Raw]:
        return _members(msgspec.Raw(self._response.body))

    def _json(self, path: str) -> bytes:
        raw = self._raw(path)
        return b"" if raw is None else bytes(raw).strip()

    def _is_array(self, path: str) -> bool:
        return self._json(path)[:1] == b"["


class Paging:
    """Computes the URL of the next page. ``target``: the URL of a page without the configured parameters."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._page: PagingOptions = options.paging
        self._records = 0
        self._number = self._page.first

    def first(self, extra: Mapping[str, str]) -> str:
        """Return the URL of the first page with the parameters ``extra``, and reset the counts of pages and records."""
        self._records, self._number = 0, self._page.first
        params = dict(extra)
        if self._page.size is not None:
            params[self._page.size_param] = str(self._page.size)
        if self._page.type == "page":
            params[self._page.param] = str(self._number)
        elif self._page.type == "offset":
            params[self._page.param] = "0"
        return _with(_without(self._options.url, self._options.params), params)

    def next(self, target: str, response: PageResponse, document: PageDocument, records: int) -> str | None:
        """Return the URL of the page after ``target``, a page with ``records`` records; None if ``target`` is the last page.

        Raises:
            SourceBroken: the member that should have the URL of the next page is not a URL.
        """
        kind, page = self._page.type, self._page
        self._records += records
        self._number += 1
        if kind == "single" or (kind in {"offset", "page"} and not records):
            return None
        if kind == "offset":
            return _with(target, {page.param: str(self._records)})
        if kind == "page":
            return _with(target, {page.param: str(self._number)})
        if kind == "cursor":
            token = _token(response, document, page.path)
            return _with(target, {page.param: token}) if token else None
        found = self._address(response, document)
        return self._without_configured(urljoin(target, found)) if found else None

    def total(self, document: PageDocument) -> int | None:
        """Return the total number of records that the page states; None if it states none."""
        paths = (self._options.total,) if self._options.total else ODATA_TOTAL
        return next((number for path in paths if (number := document.number(path)) is not None), None)

    def _address(self, response: PageResponse, document: PageDocument) -> str | None:
        kind = self._page.type
        if kind in {"auto", "link"} and (linked := _link(response.headers.get("link", ""))):
            return linked
        paths = {"next": (self._page.path,), "odata": ODATA_NEXT, "auto": (*_NEXT, *_TOKENS)}.get(kind, ())
        for path in paths:
            text = _token(response, document, path) if kind == "next" else document.text(path)
            if not text:
                continue
            if kind == "auto" and not _ADDRESS.match(text):
                raise SourceBroken(
                    f"{response.url} has a member {path} that is not an address of a next page. If it is a token, set page: "
                    f"{{type: cursor, path: {path}, param: …}}; if it has another meaning, page: single."
                )
            return text
        if kind == "auto" and (more := next(filter(document.is_true, _MORE), None)):
            raise SourceBroken(
                f"{response.url} says with the member {more} that there are more records, and has no address of a next page. Set "
                "page to the way in which this service sends more, or, if the first records are enough, page: single."
            )
        return None

    def _without_configured(self, url: str) -> str:
        """Remove configured parameters (secrets) from a URL that may be stored. Keep values that the service has set."""
        given = httpx.URL(url).params
        return _without(
            url,
            [
                name
                for name, value in self._options.params.items()
                if given.get_list(name) == [value.get_secret_value()]
            ],
        )


def _token(response: PageResponse, document: PageDocument, path: str) -> str | None:
    """Return the text of a member that names the next page; None if there is none.

    Raises SourceBroken: the member has a type that names no page, so the reading would end although there are more pages.
    """
    text = document.text(path)
    if text is None and document.is_filled(path):
        raise SourceBroken(
            f"{response.url} has a member {path} that is no text, so it names no next page. Correct page."
        )
    return text


def _without(url: str, names: Iterable[str]) -> str:
    parsed = httpx.URL(url)
    params = parsed.params
    for name in names:
        params = params.remove(name)
    return url if params == parsed.params else str(parsed.copy_with(params=params))


def _with(url: str, params: Mapping[str, str]) -> str:
    parsed = httpx.URL(url)
    return str(parsed.copy_with(params=parsed.params.merge(dict(params)))) if params else url


def _link(header: str) -> str | None:
    """Return the target of rel=next in a Link header (RFC 8288); None if there is none."""
    for found in _LINK.finditer(header):
        rel = _REL.search(found[2])
        if rel is not None and "next" in rel[1].lower().split():
            return found[1]
    return None


def _members(raw: msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    """Return the members of an object; none of another value."""
    try:
        return _OBJECT.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _member(members: Mapping[str, msgspec.Raw], names: Sequence[str]) -> msgspec.Raw | None:
    for length in range(len(names), 0, -1):
        inner = members.get(".".join(names[:length]))
        if inner is not None:
            found = inner if length == len(names) else _member(_members(inner), names[length:])
            if found is not None:
                return found
    return None
