"""Style sheets, scripts and icons, under names with a digest of their content, so that browsers can cache them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec

_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
CACHED = ("Cache-Control", "public, max-age=31536000, immutable")
"""The header for a file with a name that changes with its content."""


class PageAsset(msgspec.Struct, frozen=True, kw_only=True):
    """A file with its media type and its entity tag."""

    body: bytes
    media_type: str
    tag: str


class PageAssets:
    """The files in the folder ``assets`` of a package, and the files that all pages share; read once.

    ``prefix``: the path of the folder in URLs.
    """

    def __init__(self, package: str, *, prefix: str) -> None:
        self._by_name: dict[str, PageAsset] = {}
        self._addresses: dict[str, str] = {}
        for owner in ("ingestd.process.pages", package):
            for entry in files(owner).joinpath("assets").iterdir():
                stem, _, kind = entry.name.rpartition(".")
                if kind not in _TYPES:
                    continue
                body = entry.read_bytes()
                content = hashlib.sha256(body).hexdigest()[:16]
                name = f"{stem}.{content}.{kind}"
                self._by_name[name] = PageAsset(body=body, media_type=_TYPES[kind], tag=f'"{content}"')
                self._addresses[entry.name] = f"{prefix}/{name}"

    def address(self, name: str) -> str:
        """Return the URL of a file such as ``ui.css``.

        Raises:
            KeyError: there is no such file.
        """
        return self._addresses[name]

    def find(self, name: str) -> PageAsset | None:
        """Return the file with this name; None if there is none, for example if a page of another version requests it."""
        return self._by_name.get(name)
