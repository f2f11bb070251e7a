"""The address of the next page, in each of the ways in which services divide records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urljoin

import httpx

from connectors.http.document import PageDocument
from connectors.http.exchange import PageResponse
from connectors.http.options import HttpOptions, PagingOptions
from ingestd.sdk import SourceBroken

ODATA_NEXT: Final = ("@odata.nextLink", "odata.nextLink", "d.__next")
ODATA_TOTAL: Final = ("@odata.count", "odata.count", "d.__count")
_NEXT: Final = (
    *ODATA_NEXT, "next", "links.next", "links.next.href", "_links.next.href", "_links.next", "paging.next", "pagination.next",
    "meta.next", "next_page_url", "nextLink", "nextPageUrl",
)  # fmt: skip
_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[^;,"]+(?:"[^"]*")?[^;,"]*)*)')
_REL = re.compile(r';\s*rel\s*=\s*"?([^";]*)"?', re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|[/?]")


class Paging:
    """Finds the next page. ``target``: the address of a page without the configured parameters."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._page: PagingOptions = options.paging
        self._records = 0
        self._number = self._page.first

    def first(self, extra: Mapping[str, str]) -> str:
        """Return the address of the first page, with ``extra`` parameters; the counting begins anew."""
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
        """Return the address after the page at ``target``, which had ``records`` records; None at the end.

        Raises:
            SourceBroken: what should lead to the next page is no address.
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
            token = document.text(page.path)
            return _with(target, {page.param: token}) if token else None
        found = self._address(response, document)
        return self._without_configured(urljoin(target, found)) if found else None

    def total(self, document: PageDocument) -> int | None:
        """Return the number of all records, if the page has it."""
        paths = (self._options.total,) if self._options.total else ODATA_TOTAL
        return next((number for path in paths if (number := document.number(path)) is not None), None)

    def _address(self, response: PageResponse, document: PageDocument) -> str | None:
        kind = self._page.type
        if kind in {"auto", "link"} and (linked := _link(response.headers.get("link", ""))):
            return linked
        paths = {"next": (self._page.path,), "odata": ODATA_NEXT, "auto": _NEXT}.get(kind, ())
        for path in paths:
            text = document.text(path)
            if not text:
                continue
            if kind == "auto" and not _ADDRESS.match(text):
                raise SourceBroken(
                    f"{response.url} has a member {path} that is no address of a next page. If it is a token, set page: "
                    f"{{type: cursor, path: {path}, param: …}}; if it has another meaning, page: single."
                )
            return text
        return None

    def _without_configured(self, url: str) -> str:
        """Remove the configured values, which are secrets, from an address that may be stored. Other values are the service's."""
        given = httpx.URL(url).params
        return _without(
            url,
            [
                name
                for name, value in self._options.params.items()
                if given.get_list(name) == [value.get_secret_value()]
            ],
        )


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
    """Return the target of rel=next in a Link header (RFC 8288)."""
    for found in _LINK.finditer(header):
        rel = _REL.search(found[2])
        if rel is not None and "next" in rel[1].lower().split():
            return found[1]
    return None
