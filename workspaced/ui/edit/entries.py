"""Create, change and delete entries by forms and by the grid. The grid sends each change with the digest of the shown entry."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from workspaced.core.problems import NotFoundProblem, PreconditionFailedProblem
from workspaced.http.responses import Response
from workspaced.ui.addresses import see_other
from workspaced.ui.edit.form import (
    NEW_ID,
    SHOWN,
    ChangedMeanwhile,
    FormField,
    FormPage,
    checked,
    plain_line_ends,
    save,
)
from workspaced.ui.edit.sinks import sink_address, sink_path, sink_trail
from workspaced.ui.fed_entries import warning
from workspaced.ui.history import find_former
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest
from workspaced.ui.renderer import PageView, entry_digest, entry_values
from workspaced.ui.workspaces import SECTION

_KEY: Final = FormField(name="key", label="Key", required=True)
_VALUE: Final = FormField(name="value", label="Value", kind="text")
_NULL: Final = FormField(name="null", label="No value (null)", kind="check")
_TYPE: Final = FormField(name="dataType", label="Data type", value="scalar", required=True)
_ATTEMPTS: Final = 5


async def create_entry(request: PageRequest) -> PageView | Response:
    """GET: show the form of a new entry. POST: create the entry."""
    workspace = await request.workspace()
    sink = (await request.get(*sink_path(request), take="1")).record
    page = FormPage(
        title="New entry",
        section=SECTION,
        trail=sink_trail(workspace, sink),
        submit="Create entry",
        fields=[_KEY, _VALUE, _NULL, _TYPE, NEW_ID],
    )
    return await page.respond(request, lambda: _create(request, request.form.get("key", "")))


async def edit_entry(request: PageRequest) -> PageView | Response:
    """GET: show the form of an entry. POST: change the entry."""
    page, found = await _page(request, "Edit entry")
    entry = found.record
    fields = [
        dataclasses.replace(_VALUE, value=entry["value"] or ""),
        dataclasses.replace(_NULL, value="true" if entry["value"] is None else ""),
        dataclasses.replace(_TYPE, value=entry["dataType"]),
    ]
    page = dataclasses.replace(page, fields=fields)
    return await page.respond(request, lambda: _set(request, entry["key"], stored=entry["value"]))


async def delete_entry(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete an entry. POST: delete the entry."""
    page, found = await _page(request, "Delete entry")
    key = found.record["key"]
    page = dataclasses.replace(
        page,
        is_dangerous=True,
        sentences=[
            f"The entry “{key}” is deleted for all users.",
            *(page.sentences or ["A program that writes this entry may create it again."]),
        ],
    )
    return await page.respond(request, lambda: _delete(request, key), to=lambda _: sink_address(request))


async def restore_entry(request: PageRequest) -> Response:
    """Write a former value like an edit, and show the history. The restoration is a new change, which can be undone, too.

    Raises:
        PageRefused: the entry was changed since the page was shown, or the API responds with an error.
    """
    former = entry_values(await find_former(request))
    key = request.names["key"]
    try:
        if request.form.get(SHOWN):
            await save(request, (*sink_path(request), key), former, values_of=entry_values, exact=True)
        else:
            await request.send("POST", *sink_path(request), body={"key": key, **former})
    except ChangedMeanwhile as changed:
        raise PageRefused(409, "Not restored", _changed_sentence(changed)) from changed
    return see_other(sink_address(request, "entries", key, "history"))


async def change_entry(request: PageRequest) -> PageView:
    """Perform one action of the grid. Show the new row of the entry, and the form that undoes the action.

    ``action`` is ``create``, ``set``, ``delete`` or ``restore``, which creates an entry and keeps its line ends. An undo is
    also one of these actions, with the former value, and with the digest of the entry after the undone action. So the undo is
    refused if the entry was changed after the undone action.

    Raises:
        PageRefused: the API responds with an error.
    """
    key, action = request.form.get("key", ""), request.form.get("action", "")
    try:
        match action:
            case "create":
                after = (await _create(request, key)).record
                undo = {"action": "delete", SHOWN: entry_digest(after)}
            case "restore":
                after = (await _create(request, key, stored=request.form.get("value", ""))).record
                undo = {"action": "delete", SHOWN: entry_digest(after)}
            case "set":
                before = (await _set(request, key)).record
                after = (await request.get(*sink_path(request), key, origin="true")).record
                wanted = {**entry_values(before), **_wanted(request, before["value"])}
                undo = {"action": "set", **_fields(before), SHOWN: entry_digest({**before, **wanted})}
            case "delete":
                before = await _delete(request, key)
                return _changed(request, key, None, {"action": "restore", **_fields(before), SHOWN: ""})
            case _:
                raise PageRefused(400, "Not done", "The page sent an unknown action. Reload it and try again.")
    except ChangedMeanwhile as changed:
        return _changed(request, key, changed.response.record, {}, problem=_changed_sentence(changed), status=409)
    return _changed(request, key, after, undo)


def _changed_sentence(changed: ChangedMeanwhile) -> str:
    record = changed.response.record
    at = str(record["updatedAt"])
    return f"{record['updatedBy']} changed this entry at {at[:10]} {at[11:19]} UTC, so nothing was done."


def _changed(
    request: PageRequest,
    key: str,
    entry: Mapping[str, Any] | None,
    undo: Mapping[str, str],
    *,
    problem: str = "",
    status: int = 200,
) -> PageView:
    return PageView(
        template="edit/changed_entry.html",
        title=key,
        values={
            "entries": [] if entry is None else [entry],
            "base": sink_address(request, "entries"),
            "undo": {**undo, "key": key} if undo else {},
            "problem": problem,
        },
        status=status,
    )


def _fields(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields with which a form writes this entry unchanged."""
    null = "true" if entry["value"] is None else ""
    return {"value": entry["value"] or "", "null": null, "dataType": entry["dataType"]}


def _wanted(request: PageRequest, stored: str | None) -> dict[str, str | None]:
    """Return the members of the entry that the form has. The value gets the line ends of ``stored``."""
    form = request.form
    wanted: dict[str, str | None] = {}
    if "dataType" in form:
        wanted["dataType"] = form["dataType"].strip()
    if "value" in form:
        wanted["value"] = None if checked(form, "null") else with_line_ends(form["value"], stored or "")
    return wanted


def with_line_ends(text: str, stored: str) -> str:
    """Return a text with the line ends of the stored text. A browser sends every line end of a form as CR LF."""
    plain = plain_line_ends(text)
    if plain == plain_line_ends(stored):
        return stored
    return plain.replace("\n", "\r\n") if "\r\n" in stored else plain


async def _create(request: PageRequest, key: str, *, stored: str | None = None) -> ApiResponse:
    own_id = {"id": text} if (text := request.form.get("id", "").strip()) else {}
    body = {"key": key, **own_id, **_wanted(request, stored)}
    return await request.send("POST", *sink_path(request), body=body)


async def _set(request: PageRequest, key: str, *, stored: str | None = None) -> ApiResponse:
    """Change an entry, and return the response with the entry before the change."""
    if stored is None:
        stored = (await request.get(*sink_path(request), key)).record["value"]
    return await save(
        request,
        (*sink_path(request), key),
        _wanted(request, stored),
        values_of=entry_values,
        query={"origin": "true"},
    )


async def _delete(request: PageRequest, key: str) -> Mapping[str, Any]:
    """Delete an entry, and return its record. Raises ChangedMeanwhile: the entry has other values than the page showed."""
    for attempt in range(1, _ATTEMPTS + 1):
        found = await request.get(*sink_path(request), key, origin="true")
        if entry_digest(found.record) != request.form.get(SHOWN):
            raise ChangedMeanwhile(found, {})
        try:
            await request.send("DELETE", *sink_path(request), key, if_match=found.headers["etag"])
        except PageRefused as refused:
            if refused.status != PreconditionFailedProblem.status or attempt == _ATTEMPTS:
                raise
        else:
            return found.record
    raise AssertionError("the last attempt returns or raises")


async def _page(request: PageRequest, title: str) -> tuple[FormPage, ApiResponse]:
    workspace = await request.workspace()
    sink = (await request.get(*sink_path(request), take="1", origin="true")).record
    key = request.names["key"]
    found = await request.get(*sink_path(request), key, origin="true")
    if not isinstance(found.value, dict):
        raise PageRefused(NotFoundProblem.status, NotFoundProblem.title, "There is no such entry.")
    page = FormPage(
        title=title,
        section=SECTION,
        trail=[*sink_trail(workspace, sink), (sink_address(request, "entries", key), key)],
        hidden={SHOWN: entry_digest(found.record)},
        sentences=[one for one in [warning(sink, found.record)] if one],
    )
    return page, found
