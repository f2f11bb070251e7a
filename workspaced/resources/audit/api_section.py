"""The audit log's section of the API description."""

from __future__ import annotations

from workspaced.http.openapi.description import ApiSection, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import COUNT, NAME, NAMES, STAMP, UUID, listed, nullable, record, ref, text
from workspaced.http.openapi.shared import WALKED, WALKED_LIST, paging
from workspaced.settings.model import Limits


def api_section(limits: Limits) -> ApiSection:
    """One operation."""
    row = {
        "id": NAME,
        "time": STAMP,
        "principal": NAME,
        "keyId": nullable(NAME),
        "clientId": nullable(NAME),
        "requestId": nullable(NAME),
        "ip": nullable(NAME),
        "action": NAME,
        "resourceType": NAME,
        "resourceId": nullable(NAME),
        "workspaceId": nullable(UUID),
        "changed": NAMES,
        "counts": {"type": "object", "additionalProperties": COUNT},
    }
    query = (
        Parameter(
            name="workspaceId", description="Only what belongs to it; needed by who may not read all.", schema=UUID
        ),
        Parameter(
            name="action",
            description="Only this action (`data_sink.updated`), or those that begin so (`data_sink.*`).",
            schema=text(pattern=r"^([a-z_]+(\.[a-z_]+)*(\.\*)?)?$"),
        ),
        Parameter(name="from", description="Not before this instant.", schema=STAMP),
        Parameter(name="to", description="Before this instant.", schema=STAMP),
        *paging(limits, {"time"}, take="100", order="DESC", most_skipped=limits.walked_rows, cursors=True),
    )
    listing = OperationDescription(
        name="audit.list",
        summary="Read the audit log",
        description=(
            "Who changed what and when, the newest first. It has the names of changed members, never values. "
            f"{WALKED.format(limits.walked_rows)}"
        ),
        query=query,
        success=(Success(description="The rows.", schema=listed(ref("AuditRow")), headers=WALKED_LIST),),
    )
    return ApiSection(
        title="Audit log",
        description="What was changed, in the transaction of the change, and who was refused.",
        operations=(listing,),
        schemas={"AuditRow": record(row)},
    )
