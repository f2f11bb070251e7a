"""A page as JSON: its records as they are written, and its other members."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from connectors.formats.json.reader import Items
from connectors.formats.text import open_text
from connectors.http.exchange import PageResponse
from ingestd.sdk import SourceBroken, SourceUnavailable

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCALAR = msgspec.json.Decoder(str | int | float | bool | None)
_ODATA_RECORDS = ("value", "d.results", "d")


class PageDocument:
    """The body of a page. ``records``: the path of the array; empty: the document itself, or that of OData."""

    def __init__(self, response: PageResponse, records: str, *, odata: bool = False) -> None:
        self._response = response
        self._path = records
        if odata and not records:
            self._path = next((path for path in _ODATA_RECORDS if self._is_array(path)), "value")

    def records(self) -> Iterator[bytes]:
        """Yield the JSON text of each record.

        Raises:
            SourceUnavailable: the body is empty.
            SourceBroken: it is no JSON, ends in its middle, or has no such array.
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
        """Return the text of a member, as written if it is a number; None if it is missing, or neither text nor a number."""
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

    def number(self, path: str) -> int | None:
        """Return a member that counts something; None if it is missing or no such number."""
        text = self.text(path)
        return int(text) if text is not None and text.isdecimal() and len(text) < 16 else None

    def _raw(self, path: str) -> msgspec.Raw | None:
        """Return the JSON text of a member; a name that contains dots itself, as those of OData, is found, too."""
        return _member(msgspec.Raw(self._response.body), path.split("."))

    def _is_array(self, path: str) -> bool:
        raw = self._raw(path)
        return raw is not None and bytes(raw).lstrip()[:1] == b"["


def _member(raw: msgspec.Raw, names: Sequence[str]) -> msgspec.Raw | None:
    if not names:
        return raw
    try:
        members: Mapping[str, msgspec.Raw] = _OBJECT.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for length in range(len(names), 0, -1):
        inner = members.get(".".join(names[:length]))
        if inner is not None and (found := _member(inner, names[length:])) is not None:
            return found
    return None
