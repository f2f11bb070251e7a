"""The pages of a workspace's files: the list, a file with the results of its conversion, and a new conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ingestd.wire import names
from workspaced.http.responses import Response
from workspaced.security.permissions import FILES_READ, FILES_WRITE
from workspaced.ui.addresses import address, see_other
from workspaced.ui.edit.form import checked
from workspaced.ui.page_request import PageRefused, PageRequest, api_error, readable_json
from workspaced.ui.pager import PagePosition, sort_of
from workspaced.ui.renderer import PageView, page_view, title_of
from workspaced.ui.workspaces import SECTION

_PAGE_LENGTH: Final = 50
_PREVIEW_BYTES: Final = 2_097_152
_PREVIEW_ROWS: Final = 20
_PREVIEW_COLUMNS: Final = 12
_VERSIONS: Final = 100
_PASSED_ON: Final = ("Range", "If-Range", "If-None-Match")
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})


async def list_files(request: PageRequest) -> PageView:
    """Show the files of a workspace; by default they are sorted by name."""
    workspace_id = request.names["workspace"]
    workspace = await request.workspace()
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    sort = sort_of(request, name="fileName", size="size", changed="updatedAt")
    found = await request.get("cloud-storage", workspaceId=workspace_id, **sort.query, **list_page.query)
    return page_view(
        "files.html",
        title_of("Files", workspace["label"]),
        SECTION,
        workspace=workspace,
        files=[(file, picture_of(file)) for file in found.value],
        may_write=request.may(FILES_WRITE),
        sort=sort,
        here=address("workspaces", workspace_id, "files"),
        pager=list_page.pager(found.total, "workspaces", workspace_id, "files", sort=sort.chosen),
    )


async def show_file(request: PageRequest) -> PageView:
    """Show a file, the results of its conversion, and its versions."""
    workspace = await request.workspace()
    file = await request.get("cloud-storage", request.names["file"])
    if file.record["workspaceId"] != workspace["id"]:
        raise PageRefused(404, "Not found", "There is no such file in this workspace.")
    metadata = (await request.get("cloud-storage", "metadata", request.names["file"])).record
    versions = await request.get("cloud-storage", "version-list", request.names["file"], take=str(_VERSIONS))
    return page_view(
        "file.html",
        title_of(file.record["fileName"], workspace["label"]),
        SECTION,
        workspace=workspace,
        file=file.record,
        picture=picture_of(file.record),
        preview=await _table_preview(request, file.record),
        may_write=request.may(FILES_WRITE),
        metadata=readable_json(metadata) if metadata else "",
        versions=versions.value,
        total=versions.total,
        queued=request.query.get("queued") == "1",
    )


async def download(request: PageRequest) -> Response:
    """Return the API's response with the bytes of the file, of one of its versions, or of a result of its conversion.

    Raises:
        PageRefused: the API responds with an error.
    """
    query = {name: request.query[name] for name in ("output", "versionId") if name in request.query}
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    response = await request.api.request(
        "GET", "cloud-storage", "download", request.names["file"], query=query, headers=headers
    )
    if response.status >= 400:
        raise api_error(response.status, response.body)
    return response


async def retry(request: PageRequest) -> Response:
    """Start the conversion again, then show the file. With ``force`` in the form, a conversion in progress is stopped first."""
    body = {"force": True} if checked(request.form, "force") else None
    await request.send("POST", "cloud-storage", "retry-conversion", request.names["file"], body=body)
    return see_other(address("workspaces", request.names["workspace"], "files", request.names["file"], queued=1))


async def _table_preview(request: PageRequest, file: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first rows and columns of the first short table among the results; None if there is no such table."""
    kinds = (one for one in file["conversion"]["outputs"] if one["contentType"] == names.JSON)
    found = next((one for one in kinds if int(one["size"]) <= _PREVIEW_BYTES), None)
    if found is None or not request.may(FILES_READ):
        return None
    table = (await request.get("cloud-storage", "download", file["id"], output=found["name"])).record
    columns = table["columns"][:_PREVIEW_COLUMNS]
    rows = [row[:_PREVIEW_COLUMNS] for row in table["rows"][:_PREVIEW_ROWS]]
    return {**table, "name": found["name"], "columns": columns, "rows": rows}


def picture_of(file: Mapping[str, Any]) -> str:
    """Return the name of the smallest image among the conversion's results; empty without an image that browsers can show."""
    pictures = [one for one in file["conversion"]["outputs"] if one["contentType"] in _PICTURES]
    return str(min(pictures, key=lambda one: int(one["size"]))["name"]) if pictures else ""
