"""The style sheet, the script and the icon, under names with a digest of their content, so that browsers can cache them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from starlette.datastructures import Headers

from workspaced.core.problems import NotFoundProblem
from workspaced.http.responses import Response

_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_KEPT = ("Cache-Control", "public, max-age=31536000, immutable")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asset:
    body: bytes
    media_type: str
    tag: str


class Assets:
    """The package's asset files, read once."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Asset] = {}
        self._addresses: dict[str, str] = {}
        for entry in files("workspaced.ui").joinpath("assets").iterdir():
            stem, _, kind = entry.name.rpartition(".")
            if kind not in _TYPES:
                continue
            body = entry.read_bytes()
            content = hashlib.sha256(body).hexdigest()[:16]
            name = f"{stem}.{content}.{kind}"
            self._by_name[name] = _Asset(body=body, media_type=_TYPES[kind], tag=f'"{content}"')
            self._addresses[entry.name] = f"/ui/assets/{name}"

    def address(self, name: str) -> str:
        """Return the URL of a file such as ``ui.css``.

        Raises:
            KeyError: there is no such file in the package.
        """
        return self._addresses[name]

    def response(self, name: str, headers: Headers) -> Response:
        """Return the file with the present name.

        Raises:
            NotFoundProblem: there is none; a page of another version may request it.
        """
        asset = self._by_name.get(name)
        if asset is None:
            raise NotFoundProblem("no_such_asset", "There is no such file. Reload the page.")
        kept = (("ETag", asset.tag), _KEPT)
        if asset.tag in headers.get("If-None-Match", ""):
            return Response(status=304, headers=kept)
        return Response(status=200, headers=(("Content-Type", asset.media_type), *kept), body=asset.body)
