"""The section of the API description for operators."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import OBJECT, STRING, choice, response
from workspaced.http.openapi.description import ApiSection, OperationDescription, Success

_FINE: Final = Success("It is.", response({"status": choice("ok")}))
_NOT_READY: Final = "`stopping`, `schema_behind`, or the database can't be reached."


def api_section(*, pages: bool) -> ApiSection:
    """Return the section: health checks and the API description; ``pages``: also as HTML."""
    html = OperationDescription(
        "openapi.pages",
        "Read this description",
        "The same as HTML.",
        Success("The page.", STRING, media="text/html"),
        etag=True,
    )
    return ApiSection(
        title="Operating",
        description="For operators of the service; open to every caller that reaches it.",
        operations=(
            OperationDescription("health.live", "Is the process up", "Does not use the database.", _FINE),
            OperationDescription(
                "health.ready",
                "Can the service serve",
                "Reads and writes the database.",
                _FINE,
                refusals={503: _NOT_READY},
            ),
            OperationDescription(
                "openapi.document",
                "Get this description",
                "The OpenAPI 3.1 document, with what is sent to webhooks.",
                Success("The document.", OBJECT),
                etag=True,
            ),
            *((html,) if pages else ()),
        ),
    )
