"""Create, change and delete a data sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address
from workspaced.ui.edit.form import (
    NEW_ID,
    SHOWN,
    FormField,
    FormPage,
    Link,
    read_members,
    save,
    schema_fields,
    with_values,
)
from workspaced.ui.edit.workspaces import workspace_trail
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView, shown_digest
from workspaced.ui.workspaces import SECTION, icon_of

_FIRST: Final = ("label", "description", "tags")
_PROTECTION: Final = "protectFedEntries"


def _fields(request: PageRequest) -> list[FormField]:
    hint = (
        "Only pipelines, and other programs that send the origin of a value, may change the entries that they wrote. People "
        "change such an entry in its source."
    )
    protection = {"label": "Protect entries that a pipeline feeds", "hint": hint}
    schema = request.schema_of("NewDataSink")
    return schema_fields(schema, (*_FIRST, _PROTECTION), without=["entries", "origins"], **{_PROTECTION: protection})


def sink_path(request: PageRequest) -> tuple[str, ...]:
    """Return the segments of the sink's path in the API, below ``/v1``."""
    return ("workspace", request.names["workspace"], "data-sink", request.names["sink"])


def sink_address(request: PageRequest, *more: str, **query: object) -> str:
    """Return the URL of the sink's page, or of a page below this URL."""
    return address("workspaces", request.names["workspace"], "sinks", request.names["sink"], *more, **query)


def sink_trail(workspace: Mapping[str, Any], sink: Mapping[str, Any]) -> list[Link]:
    """Return the links to the workspaces, the workspace and the sink."""
    target = address("workspaces", workspace["id"], "sinks", sink["visibleId"])
    return [*workspace_trail(workspace), (target, sink["label"])]


def _wanted(request: PageRequest, fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the members of the form. An empty text becomes None, except for the label."""
    found = read_members(request.form, fields)
    if "icon" in found:
        found["icon"] = {name: part for name, part in found["icon"].items() if part != ""} or None
    return {name: None if value == "" and name != "label" else value for name, value in found.items()}


def _values_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        **{name: record[name] or (record[name] if name == "label" else None) for name in _FIRST},
        "icon": icon_of(record),
        _PROTECTION: record[_PROTECTION],
    }


async def create_sink(request: PageRequest) -> PageView | Response:
    """GET: show the form of a new data sink. POST: create the data sink."""
    workspace = await request.workspace()
    fields = [*_fields(request), NEW_ID]
    page = FormPage(
        title="New data sink",
        section=SECTION,
        trail=workspace_trail(workspace),
        submit="Create data sink",
        fields=fields,
    )
    return await page.respond(
        request,
        lambda: request.send("POST", "workspace", workspace["id"], "data-sink", body=_wanted(request, fields)),
        to=lambda made: address("workspaces", workspace["id"], "sinks", made.record["visibleId"]),
    )


async def edit_sink(request: PageRequest) -> PageView | Response:
    """GET: show the form of a data sink. POST: change the data sink."""
    workspace = await request.workspace()
    sink = (await request.get(*sink_path(request), take="1", origin="true")).record
    fields = _fields(request)
    page = FormPage(
        title="Edit data sink",
        section=SECTION,
        trail=sink_trail(workspace, sink),
        fields=with_values(fields, _values_of(sink)),
        hidden={SHOWN: shown_digest(_values_of(sink))},
    )
    return await page.respond(
        request,
        lambda: save(
            request,
            sink_path(request),
            _wanted(request, fields),
            values_of=_values_of,
            query={"take": "1", "origin": "true"},
        ),
    )


async def delete_sink(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete a data sink. POST: delete the data sink."""
    workspace = await request.workspace()
    found = await request.get(*sink_path(request), take="1")
    sink = found.record
    named = f"“{sink['label']}” ({sink['visibleId']})"
    page = FormPage(
        title="Delete data sink",
        section=SECTION,
        trail=sink_trail(workspace, sink),
        sentences=[
            f"The data sink {named} is deleted for all users (entries: {found.total}). This can't be undone.",
            "Programs that write to it, such as ingestd, will fail.",
        ],
        is_dangerous=True,
    )
    return await page.respond(
        request,
        lambda: request.send("DELETE", *sink_path(request)),
        to=lambda _: address("workspaces", workspace["id"]),
    )
