"""The files of the pages, as responses."""

from __future__ import annotations

from ingestd.process.pages.assets import CACHED, PageAssets
from workspaced.core.problems import NotFoundProblem
from workspaced.http.headers import RequestHeaders
from workspaced.http.responses import Response


class Assets(PageAssets):
    """The asset files of this package and the shared ones."""

    def __init__(self) -> None:
        super().__init__("workspaced.ui", prefix="/ui/assets")

    def response(self, name: str, headers: RequestHeaders) -> Response:
        """Return the file with the present name.

        Raises:
            NotFoundProblem: there is none; a page of another version may request it.
        """
        asset = self.find(name)
        if asset is None:
            raise NotFoundProblem("no_such_asset", "There is no such file. Reload the page.")
        kept = (("ETag", asset.tag), CACHED)
        if asset.tag in headers.get("If-None-Match", ""):
            return Response(status=304, headers=kept)
        return Response(status=200, headers=(("Content-Type", asset.media_type), *kept), body=asset.body)
