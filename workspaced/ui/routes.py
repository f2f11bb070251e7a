"""The table of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from workspaced.http.responses import Response
from workspaced.ui import blocks, entries, files, webhooks, workspaces
from workspaced.ui.live import Live
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import Visit

Page: TypeAlias = Callable[[Visit], Awaitable[PageView | Response]]

_WORKSPACE = "/ui/workspaces/{workspace}"
_SINK = f"{_WORKSPACE}/sinks/{{sink}}"
_FILE = f"{_WORKSPACE}/files/{{file}}"
_WEBHOOK = "/ui/webhooks/{webhook}"
_DELIVERY = f"{_WEBHOOK}/deliveries/{{delivery}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row. A POST is let in only with the token of the session's forms. ``name`` is what requests are counted under."""

    name: str
    method: str
    path: str
    page: Page


def routes(live: Live) -> tuple[Route, ...]:
    """The pages for who is signed in."""
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
