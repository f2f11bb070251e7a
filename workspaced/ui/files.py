"""A workspace's files: how far their conversion is, what it made, and having it done once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.pager import Turn
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import PageRefused, Visit, refused
from workspaced.ui.workspaces import SECTION

_AT_ONCE: Final = 50
_VERSIONS: Final = 100
_PASSED_ON: Final = ("Range", "If-Range", "If-None-Match")
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})


async def list_files(visit: Visit) -> PageView:
    """Those that are there, by name."""
    workspace_id = visit.names["workspace"]
    workspace = await visit.get("workspace", workspace_id)
    turn = Turn(take=_AT_ONCE, skip=visit.number("skip"))
    found = await visit.get("cloud-storage", workspaceId=workspace_id, sortedBy="fileName", **turn.query)
    return PageView(
        template="files.html",
        title=workspace.record["label"],
        section=SECTION,
        values={
            "workspace": workspace.record,
            "files": [(file, picture_of(file)) for file in found.value],
            "pager": turn.pager(found.total, "workspaces", workspace_id, "files"),
        },
    )


async def show_file(visit: Visit) -> PageView:
    """A file, what its conversion made, and its versions."""
    workspace = await visit.get("workspace", visit.names["workspace"])
    file = await visit.get("cloud-storage", visit.names["file"])
    if file.record["workspaceId"] != workspace.record["id"]:
        raise PageRefused(404, "Not found", "There is no such file in this workspace.")
    versions = await visit.get("cloud-storage", "version-list", visit.names["file"], take=str(_VERSIONS))
    return PageView(
        template="file.html",
        title=file.record["fileName"],
        section=SECTION,
        values={
            "workspace": workspace.record,
            "file": file.record,
            "picture": picture_of(file.record),
            "versions": versions.value,
            "total": versions.total,
            "queued": visit.query.get("queued") == "1",
        },
    )


async def download(visit: Visit) -> Response:
    """The bytes, as the API sends them: of the file, of a version of it, or of what its conversion made.

    Raises:
        PageRefused: the API says no.
    """
    query = {name: visit.query[name] for name in ("output", "versionId") if name in visit.query}
    headers = {name: visit.headers[name] for name in _PASSED_ON if name in visit.headers}
    answer = await visit.api.request(
        "GET", "cloud-storage", "download", visit.names["file"], query=query, headers=headers
    )
    if answer.status >= 400:
        raise refused(answer.status, answer.body)
    return answer


async def retry(visit: Visit) -> Response:
    """Have the conversion done once more, and show what comes of it."""
    await visit.post("cloud-storage", "retry-conversion", visit.names["file"])
    return see_other(address("workspaces", visit.names["workspace"], "files", visit.names["file"], queued=1))


def picture_of(file: Mapping[str, Any]) -> str:
    """The name of the smallest picture that the conversion made; empty where it made none that a browser shows."""
    pictures = [one for one in file["conversion"]["outputs"] if one["contentType"] in _PICTURES]
    return str(min(pictures, key=lambda one: int(one["size"]))["name"]) if pictures else ""
