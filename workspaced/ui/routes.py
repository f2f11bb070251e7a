"""The table of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from workspaced.http.responses import Response
from workspaced.ui import blocks, entries, files, webhooks, workspaces
from workspaced.ui.live import LiveUpdates
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView

Page: TypeAlias = Callable[[PageRequest], Awaitable[PageView | Response]]

_WORKSPACE = "/ui/workspaces/{workspace}"
_SINK = f"{_WORKSPACE}/sinks/{{sink}}"
_FILE = f"{_WORKSPACE}/files/{{file}}"
_WEBHOOK = "/ui/webhooks/{webhook}"
_DELIVERY = f"{_WEBHOOK}/deliveries/{{delivery}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row. A POST requires the form token of the session. Requests are counted under ``name``."""

    name: str
    method: str
    path: str
    page: Page


def routes(live: LiveUpdates) -> tuple[Route, ...]:
    """Return the pages for signed-in users."""
    return (
        Route(name="home", method="GET", path="/ui", page=workspaces.home),
        Route(name="workspaces", method="GET", path="/ui/workspaces", page=workspaces.list_workspaces),
        Route(name="workspace", method="GET", path=_WORKSPACE, page=workspaces.show_workspace),
        Route(name="sink", method="GET", path=_SINK, page=entries.show_sink),
        Route(name="csv", method="GET", path=f"{_SINK}/entries.csv", page=entries.csv),
        Route(name="live", method="GET", path=f"{_SINK}/live", page=live.follow),
        Route(name="entry", method="GET", path=f"{_SINK}/entries/{{key}}", page=entries.show_entry),
        Route(name="blocks", method="GET", path=f"{_WORKSPACE}/blocks", page=blocks.show_tree),
        Route(name="block", method="GET", path=f"{_WORKSPACE}/blocks/{{block}}", page=blocks.show_block),
        Route(name="files", method="GET", path=f"{_WORKSPACE}/files", page=files.list_files),
        Route(name="file", method="GET", path=_FILE, page=files.show_file),
        Route(name="download", method="GET", path=f"{_FILE}/download", page=files.download),
        Route(name="retry_conversion", method="POST", path=f"{_FILE}/retry", page=files.retry),
        Route(name="webhooks", method="GET", path="/ui/webhooks", page=webhooks.list_webhooks),
        Route(name="webhook", method="GET", path=_WEBHOOK, page=webhooks.show_webhook),
        Route(name="test_webhook", method="POST", path=f"{_WEBHOOK}/test", page=webhooks.test),
        Route(name="delivery", method="GET", path=_DELIVERY, page=webhooks.show_delivery),
        Route(name="redeliver", method="POST", path=f"{_DELIVERY}/redeliver", page=webhooks.redeliver),
    )
