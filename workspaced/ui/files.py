"""A workspace's files: the state of their conversion, its results, and a repetition of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.page_request import PageRefused, PageRequest, api_error
from workspaced.ui.pager import PagePosition
from workspaced.ui.renderer import PageView, page_view
from workspaced.ui.workspaces import SECTION

_PAGE_LENGTH: Final = 50
_VERSIONS: Final = 100
_PASSED_ON: Final = ("Range", "If-Range", "If-None-Match")
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})


async def list_files(request: PageRequest) -> PageView:
    """Show the files, by name."""
    workspace_id = request.names["workspace"]
    workspace = await request.workspace()
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    found = await request.get("cloud-storage", workspaceId=workspace_id, sortedBy="fileName", **list_page.query)
    return page_view(
        "files.html",
        workspace["label"],
        SECTION,
        workspace=workspace,
        files=[(file, picture_of(file)) for file in found.value],
        pager=list_page.pager(found.total, "workspaces", workspace_id, "files"),
    )


async def show_file(request: PageRequest) -> PageView:
    """Show a file, the results of its conversion, and its versions."""
    workspace = await request.workspace()
    file = await request.get("cloud-storage", request.names["file"])
    if file.record["workspaceId"] != workspace["id"]:
        raise PageRefused(404, "Not found", "There is no such file in this workspace.")
    versions = await request.get("cloud-storage", "version-list", request.names["file"], take=str(_VERSIONS))
    return page_view(
        "file.html",
        file.record["fileName"],
        SECTION,
        workspace=workspace,
        file=file.record,
        picture=picture_of(file.record),
        versions=versions.value,
        total=versions.total,
        queued=request.query.get("queued") == "1",
    )


async def download(request: PageRequest) -> Response:
    """Return the bytes that the API sends: of the file, of one of its versions, or of a result of its conversion.

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
    """Repeat the conversion, then show the file."""
    await request.post("cloud-storage", "retry-conversion", request.names["file"])
    return see_other(address("workspaces", request.names["workspace"], "files", request.names["file"], queued=1))


def picture_of(file: Mapping[str, Any]) -> str:
    """Return the name of the smallest image among the conversion's results; empty if there is none that browsers show."""
    pictures = [one for one in file["conversion"]["outputs"] if one["contentType"] in _PICTURES]
    return str(min(pictures, key=lambda one: int(one["size"]))["name"]) if pictures else ""
