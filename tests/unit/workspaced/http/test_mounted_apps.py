"""The first segment of the undecoded path chooses the application that receives a request."""

from __future__ import annotations

import pytest

from workspaced.core.asgi import Receive, Scope, Send
from workspaced.http.mounted_apps import MountedApps


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/ui", "pages"),
        (b"/ui/", "pages"),
        (b"/ui/workspaces/a", "pages"),
        (b"/uix", "api"),
        (b"/v1/ui", "api"),
        (b"/%75i", "api"),
        (b"/", "api"),
        (b"*", "api"),
    ],
)
async def test_the_first_segment_chooses_the_application(path: bytes, expected: str) -> None:
    served: list[tuple[str, Scope]] = []

    async def pages(scope: Scope, receive: Receive, send: Send) -> None:
        served.append(("pages", scope))

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        served.append(("api", scope))

    async def unused(*_: object) -> None:
        raise AssertionError("the application was chosen by more than the path")

    scope = {"type": "http", "path": path.decode(), "raw_path": path}
    await MountedApps(api, {b"ui": pages})(scope, unused, unused)  # type: ignore[arg-type]  # never called
    assert served == [(expected, scope)]
