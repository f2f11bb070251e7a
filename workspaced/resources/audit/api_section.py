"""The section of the API description for the audit log."""

from __future__ import annotations

from workspaced.core.json_schema import TIMESTAMP, UUID, record_schemas, string
from workspaced.http.openapi.description import ApiSection, OperationDescription, Parameter, listed
from workspaced.http.openapi.shared import WALKED, paging
from workspaced.resources.audit.routes import AuditRowRecord
from workspaced.settings.model import Limits


def api_section(limits: Limits) -> ApiSection:
    """Return the section with its one operation."""
    action = string(pattern=r"^([a-z_]+(\.[a-z_]+)*(\.\*)?)?$")
    query = (
        Parameter("workspaceId", "Only rows of this workspace; required if the key may not read all rows.", UUID),
        Parameter("action", "Only this action (`data_sink.updated`), or a group of actions (`data_sink.*`).", action),
        Parameter("from", "Not before this instant.", TIMESTAMP),
        Parameter("to", "Before this instant.", TIMESTAMP),
        *paging(limits, {"time"}, take="100", order="DESC", most_skipped=limits.walked_rows, cursors=True),
    )
    listing = OperationDescription(
        "audit.list",
        "Read the audit log",
        "Who changed what and when, the newest first. A row has the names of changed members, never values. "
        f"{WALKED.format(limits.walked_rows)}",
        listed("The rows.", "AuditRow", counted=False),
        query=query,
    )
    return ApiSection(
        title="Audit log",
        description="Every change, written in the transaction of the change, and every rejected caller.",
        operations=(listing,),
        schemas=record_schemas(AuditRowRecord),
    )
