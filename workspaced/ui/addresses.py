"""URLs of the pages. All segments and values are percent-encoded. Performs no I/O."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from workspaced.http.responses import Response


def address(*segments: str, **query: object) -> str:
    """Return ``/ui/<segments>?<query>``. Values that are None or empty are omitted; a list gives a parameter for each item."""
    path = "/".join(("/ui", *(quote(segment, safe="") for segment in segments)))
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def below(base: str, segment: str) -> str:
    """Return ``<base>/<segment>``; ``base`` has no query."""
    return f"{base}/{quote(segment, safe='')}"


def see_other(target: str, *headers: tuple[str, str]) -> Response:
    """Return a redirect to a page."""
    return Response(status=303, headers=(("Location", target), *headers))
