"""Addresses of the pages, with every segment and value encoded. Pure."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from workspaced.http.responses import Response


def address(*segments: str, **query: object) -> str:
    """``/ui/<segments>?<query>``; values that are None or empty are left out."""
    path = "/".join(("/ui", *(quote(segment, safe="") for segment in segments)))
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def below(base: str, segment: str) -> str:
    """The address of one thing below an address without a query."""
    return f"{base}/{quote(segment, safe='')}"


def see_other(target: str, *headers: tuple[str, str]) -> Response:
    """Go on to that page."""
    return Response(status=303, headers=(("Location", target), *headers))
