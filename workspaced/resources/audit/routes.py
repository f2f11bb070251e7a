"""The operation that reads the audit log (contract G26)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_schema import TIMESTAMP, UUID, Count, Timestamp, Uuid, string
from workspaced.core.problems import ForbiddenProblem, Invalid
from workspaced.core.text import as_uuid
from workspaced.core.timestamps import microseconds, stamp
from workspaced.http.description import Parameter, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.pagination import read_page
from workspaced.http.responses import Response, json_response
from workspaced.resources.operation_rows import get
from workspaced.resources.read_responses import cursor_numbers
from workspaced.security import audit_log
from workspaced.security.audit_log import AuditPosition, AuditQuery, StoredAuditRow
from workspaced.security.permissions import AUDIT_READ
from workspaced.settings.model import Limits

_ACTION = re.compile(r"[a-z_]+(?:\.[a-z_]+)*(?:\.\*)?", re.ASCII)
_TAKE = 100


class AuditRowRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A row of the audit log."""

    id: str
    time: Timestamp
    principal: str
    key_id: str | None
    client_id: str | None
    request_id: str | None
    ip: str | None
    action: str
    resource_type: str
    resource_id: str | None
    resource_label: str | None
    workspace_id: Uuid | None
    changed: list[str]
    counts: dict[str, Count]
    origin: Annotated[str | UnsetType, Meta(description="Where the values came from, if the writer said so.")] = UNSET


async def read_log(call: Call) -> Response:
    """Read the audit log.

    Who changed what and when, the newest first. A row has the names of changed members, never values. A page examines
    at most $walked_rows rows. With a filter it may have fewer rows than `take`, or none, and still have a Link rel=next.
    The first page has X-Total-Count, unless there are more than $walked_rows rows.
    200: The rows.
    """
    limits = call.settings.limits
    query = {"sortOrder": "DESC", "take": str(_TAKE), **call.query}
    page = read_page(query, longest=limits.page_length, sortable=frozenset({"time"}), walk=limits.walked_rows)
    wanted = AuditQuery(
        workspace_id=_workspace(call),
        action=_action(call.query),
        since=_instant(call.query, "from", 0),
        until=_instant(call.query, "to", 2**62),
        take=page.take or _TAKE,
        walk=limits.walked_rows,
        skip=page.skip,
        descending=page.descending,
        after=AuditPosition(*cursor_numbers(page.cursor, 2)) if page.cursor else None,
    )
    found = await call.store.read(lambda reader: audit_log.find(reader, wanted))
    following = page.cursor_after(str(found.next_after.at), str(found.next_after.number)) if found.next_after else ""
    headers = page.cursor_headers(total=found.total, following=following, path=call.path, query=call.query)
    return json_response([_record(row) for row in found.rows], headers=headers)


def _workspace(call: Call) -> str | None:
    """Return the workspace in the query; None: all workspaces. Raises ForbiddenProblem: the key may not read these rows."""
    text = call.query.get("workspaceId")
    workspace_id = as_uuid(text) if text is not None else None
    if text is not None and workspace_id is None:
        raise Invalid("bad_workspace_id", "workspaceId must be a UUID.")
    if call.principal is None or not call.principal.may(AUDIT_READ, workspace_id):
        raise ForbiddenProblem
    return workspace_id


def _action(query: Mapping[str, str]) -> str:
    action = query.get("action", "")
    if action and not _ACTION.fullmatch(action):
        raise Invalid("bad_action", "action must be a name like data_sink.updated, or end with .* (data_sink.*).")
    return action


def _instant(query: Mapping[str, str], name: str, default: int) -> int:
    """Return milliseconds since 1970, rounded up, so that ``from`` selects no earlier row."""
    text = query.get(name)
    if text is None:
        return default
    try:
        return -(-microseconds(text) // 1_000)
    except ValueError as error:
        raise Invalid(f"bad_{name}", f"{name} must be an RFC 3339 date-time with an offset.") from error


def _record(row: StoredAuditRow) -> AuditRowRecord:
    return AuditRowRecord(
        id=str(row.number),
        time=stamp(row.at),
        principal=row.principal,
        key_id=row.key_id or None,
        client_id=row.client_id or None,
        request_id=row.request_id or None,
        ip=row.address or None,
        action=row.action,
        resource_type=row.action.rpartition(".")[0],
        resource_id=row.resource_id or None,
        resource_label=row.resource_label or None,
        workspace_id=row.workspace_id or None,
        changed=json.loads(row.changed),
        counts=json.loads(row.counts),
        origin=row.origin or UNSET,
    )


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operation that reads the audit log."""
    action = string(pattern=r"^([a-z_]+(\.[a-z_]+)*(\.\*)?)?$")
    query = (
        Parameter("workspaceId", "Only rows of this workspace; required if the key may not read all rows.", UUID),
        Parameter("action", "Only this action (`data_sink.updated`), or a group of actions (`data_sink.*`).", action),
        Parameter("from", "Only rows at this instant or later.", TIMESTAMP),
        Parameter("to", "Only rows before this instant.", TIMESTAMP),
        *paging(limits, {"time"}, take="100", order="DESC", most_skipped=limits.walked_rows, cursors=True),
    )
    success = listed(AuditRowRecord, counted=False)
    return (
        get("audit.list", "/v1/audit-log", AUDIT_READ, read_log, anywhere=True).described(success=success, query=query),
    )
