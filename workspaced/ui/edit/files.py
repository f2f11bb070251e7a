"""Upload, change and delete files. The bytes of an upload are streamed to the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ingestd.wire import names
from workspaced.core.json_body import decode
from workspaced.core.problems import Invalid, PreconditionFailedProblem
from workspaced.http.responses import Response, json_response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.edit.form import (
    SHOWN,
    FormField,
    FormPage,
    read_members,
    save,
    with_values,
)
from workspaced.ui.edit.workspaces import workspace_trail
from workspaced.ui.page_request import CLIENT_ID, ApiResponse, PageRefused, PageRequest, parse_response, readable_json
from workspaced.ui.renderer import PageView, shown_digest
from workspaced.ui.workspaces import SECTION

_FIELDS: Final = (
    FormField(name="fileName", label="Name", required=True),
    FormField(name="contentType", label="Type", hint="Empty: the type follows from the name."),
    FormField(name="description", label="Description", kind="text"),
    FormField(name="tags", label="Tags", hint="Separated by commas."),
)
_ATTEMPTS: Final = 5
_PASSED_ON: Final = ("Content-Type", "Content-Length")


def _file_address(request: PageRequest, *more: str) -> str:
    return address("workspaces", request.names["workspace"], "files", *more)


async def upload(request: PageRequest) -> Response:
    """Store the body as a new file with the name in the query; respond with the URL of the file's page.

    Raises:
        PageRefused: the API responds with an error.
    """
    return await _store(request, {"fileName": request.query.get("name", "")})


async def upload_version(request: PageRequest) -> Response:
    """Store the body as the newest version of a file, which keeps its name and type. The response is like that of `upload`.

    Raises:
        PageRefused: the API responds with an error.
    """
    _, file = await _page(request, "")
    return await _store(request, {"id": file["id"]})


async def _store(request: PageRequest, query: Mapping[str, str]) -> Response:
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    made = await parse_response(
        await request.api.request(
            "POST",
            "cloud-storage",
            query={"workspaceId": request.names["workspace"], **query},
            headers={names.CLIENT_ID: CLIENT_ID, **headers},
            body=request.body,
        )
    )
    return json_response(
        {"page": _file_address(request, made.record["id"]), "name": made.record["fileName"]}, status=201
    )


def _values_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {one.name: record[one.name] or None for one in _FIELDS}


async def edit_file(request: PageRequest) -> PageView | Response:
    """GET: show the form of a file. POST: change the file's name, description and tags."""
    page, file = await _page(request, "Edit file")
    page = dataclasses.replace(page, fields=with_values(_FIELDS, file))

    async def change() -> ApiResponse:
        wanted = {name: value or None for name, value in read_members(request.form, _FIELDS).items()}
        return await save(
            request,
            ("cloud-storage", file["id"]),
            wanted,
            values_of=_values_of,
        )

    return await page.respond(request, change)


async def edit_metadata(request: PageRequest) -> PageView | Response:
    """GET: show the metadata of a file as JSON. POST: replace the metadata if they are still as the form showed them."""
    page, file = await _page(request, "Edit metadata")
    path = ("cloud-storage", "metadata", file["id"])
    field = FormField(name="metadata", label="Metadata", kind="text", hint="A JSON object. Other programs may use it.")
    attempts = 0
    while True:
        attempts += 1
        found = await request.get(*path)
        present = readable_json(found.record)
        shown = shown_digest({"metadata": present})
        page = dataclasses.replace(page, fields=[dataclasses.replace(field, value=present)], hidden={SHOWN: shown})
        if request.method != "POST":
            return page.view()
        page = page.filled(request.form)
        if request.form.get(SHOWN, "") != shown:
            fields = [dataclasses.replace(page.fields[0], present=present)]
            sentence = "The metadata were changed after you opened the form. Save again to replace them by your input."
            return dataclasses.replace(page, fields=fields, problem=sentence, status=409).view()
        try:
            wanted = decode(request.form.get("metadata", "").encode())
            await request.send("PUT", *path, body=wanted, if_match=found.headers["etag"])
        except Invalid as mistake:
            return dataclasses.replace(page, problem=mistake.detail, status=mistake.status).view()
        except PageRefused as refused:
            # A conversion changes the version of the file, too, so a failed precondition is retried.
            if refused.status != PreconditionFailedProblem.status or attempts == _ATTEMPTS:
                return page.refused(refused).view()
        else:
            return see_other(page.back)


async def delete_file(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete a file. POST: delete the file."""
    page, file = await _page(request, "Delete file")
    page = dataclasses.replace(
        page,
        sentences=[f"The file “{file['fileName']}” with all its versions is deleted for all users."],
        is_dangerous=True,
    )
    return await page.respond(
        request,
        lambda: request.send("DELETE", "cloud-storage", file["id"], query={"workspaceId": file["workspaceId"]}),
        to=lambda _: _file_address(request),
    )


async def _page(request: PageRequest, title: str) -> tuple[FormPage, Mapping[str, Any]]:
    workspace = await request.workspace()
    file = (await request.get("cloud-storage", request.names["file"])).record
    if file["workspaceId"] != workspace["id"]:
        raise PageRefused(404, "Not found", "There is no such file in this workspace.")
    trail = [
        *workspace_trail(workspace),
        (_file_address(request), "Files"),
        (_file_address(request, file["id"]), file["fileName"]),
    ]
    page = FormPage(
        title=title,
        section=SECTION,
        trail=trail,
        hidden={SHOWN: shown_digest(_values_of(file))},
    )
    return page, file
