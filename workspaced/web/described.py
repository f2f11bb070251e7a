"""The chapter of the OpenAPI document for those who run the service."""

from __future__ import annotations

from typing import Final

from workspaced.openapi.description import Chapter, Described, Success
from workspaced.openapi.schema import NAME, OBJECT, choice, record

_FINE: Final = Success(description="It is.", schema=record({"status": choice("ok")}))
_STOPPING: Final = "`stopping`, `schema_behind`, or the database can't be reached."


_DOCUMENT: Final = Described(
    name="openapi.document",
    summary="Get this description",
    description="The OpenAPI 3.1 document, with what is sent to webhooks.",
    success=(Success(description="The document.", schema=OBJECT, headers=("ETag",)),),
    etag=True,
)
_PAGES: Final = Described(
    name="openapi.pages",
    summary="Read this description",
    description="The same as pages for people.",
    success=(Success(description="The pages.", schema=NAME, media="text/html", headers=("ETag",)),),
    etag=True,
)


def chapter(*, pages: bool) -> Chapter:
    """Is the process up, can it serve, and what does it offer; ``pages``: there are pages for people."""
    return Chapter(
        title="Operating",
        description="For those who run the service; open to everybody who reaches it.",
        operations=(
            Described(
                name="health.live",
                summary="Is the process up",
                description="Asks nothing of the database.",
                success=(_FINE,),
            ),
            Described(
                name="health.ready",
                summary="Can the service serve",
                description="Reads and writes the database.",
                success=(_FINE,),
                refusals={503: _STOPPING},
            ),
            _DOCUMENT,
            *((_PAGES,) if pages else ()),
        ),
    )
