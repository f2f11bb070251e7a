"""The section of the API description for operators."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, OperationDescription, Success
from workspaced.http.openapi.schema import NAME, OBJECT, choice, record

_FINE: Final = Success(description="It is.", schema=record({"status": choice("ok")}))
_STOPPING: Final = "`stopping`, `schema_behind`, or the database can't be reached."


_DOCUMENT: Final = OperationDescription(
    name="openapi.document",
    summary="Get this description",
    description="The OpenAPI 3.1 document, with what is sent to webhooks.",
    success=(Success(description="The document.", schema=OBJECT, headers=("ETag",)),),
    etag=True,
)
_PAGES: Final = OperationDescription(
    name="openapi.pages",
    summary="Read this description",
    description="The same as pages for people.",
    success=(Success(description="The pages.", schema=NAME, media="text/html", headers=("ETag",)),),
    etag=True,
)


def api_section(*, pages: bool) -> ApiSection:
    """Is the process up, can it serve, and what does it offer; ``pages``: there are pages for people."""
    return ApiSection(
        title="Operating",
        description="For those who run the service; open to everybody who reaches it.",
        operations=(
            OperationDescription(
                name="health.live",
                summary="Is the process up",
                description="Asks nothing of the database.",
                success=(_FINE,),
            ),
            OperationDescription(
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
