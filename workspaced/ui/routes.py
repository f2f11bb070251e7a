"""The table of the pages: their paths and handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from workspaced.http.responses import Response
from workspaced.ui import audit, blocks, entries, files, groups, history, keys, plot, search, webhooks, workspaces
from workspaced.ui.live import LiveUpdates
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView

FORM_BYTES: Final = 8_192
Page: TypeAlias = Callable[[PageRequest], Awaitable[PageView | Response]]

WORKSPACE: Final = "/ui/workspaces/{workspace}"
SINK: Final = f"{WORKSPACE}/sinks/{{sink}}"
ENTRY: Final = f"{SINK}/entries/{{key}}"
BLOCK: Final = f"{WORKSPACE}/blocks/{{block}}"
FILE: Final = f"{WORKSPACE}/files/{{file}}"
WEBHOOK: Final = "/ui/webhooks/{webhook}"
_DELIVERY = f"{WEBHOOK}/deliveries/{{delivery}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A page or an action. A POST needs the form token of the session. The metrics count requests under ``name``.

    ``form_bytes``: the maximum size of the form. None: the body is no form, and the token is in the header `X-Form-Token`,
    which pages of other sites can't send. ``keeps_input``: a form from another session changes nothing, but is shown again
    with the user's input.
    """

    name: str
    method: str
    path: str
    page: Page
    form_bytes: int | None = FORM_BYTES
    keeps_input: bool = False


def routes(live: LiveUpdates) -> tuple[Route, ...]:
    """Return the pages for signed-in users."""
    return (
        Route(name="home", method="GET", path="/ui", page=workspaces.home),
        Route(name="workspaces", method="GET", path="/ui/workspaces", page=workspaces.list_workspaces),
        Route(name="workspace", method="GET", path=WORKSPACE, page=workspaces.show_workspace),
        Route(name="search", method="GET", path=f"{WORKSPACE}/search", page=search.search_workspace),
        Route(name="sink", method="GET", path=SINK, page=entries.show_sink),
        Route(name="csv", method="GET", path=f"{SINK}/entries.csv", page=entries.csv),
        Route(name="live", method="GET", path=f"{SINK}/live", page=live.follow),
        Route(name="groups", method="GET", path=f"{SINK}/groups", page=groups.show_groups),
        Route(name="entry", method="GET", path=ENTRY, page=entries.show_entry),
        Route(name="history", method="GET", path=f"{SINK}/history", page=history.show_history),
        Route(
            name="configure_history", method="POST", path=f"{SINK}/history", page=history.configure, keeps_input=True
        ),
        Route(
            name="entry_history",
            method="GET",
            path=f"{ENTRY}/history",
            page=history.show_entry_history,
        ),
        Route(name="plot", method="GET", path=f"{SINK}/plot", page=plot.show_plot),
        Route(name="blocks", method="GET", path=f"{WORKSPACE}/blocks", page=blocks.show_tree),
        Route(name="block", method="GET", path=BLOCK, page=blocks.show_block),
        Route(name="files", method="GET", path=f"{WORKSPACE}/files", page=files.list_files),
        Route(name="file", method="GET", path=FILE, page=files.show_file),
        Route(name="download", method="GET", path=f"{FILE}/download", page=files.download),
        Route(name="retry_conversion", method="POST", path=f"{FILE}/retry", page=files.retry),
        Route(name="audit", method="GET", path="/ui/audit", page=audit.show_log),
        Route(name="keys", method="GET", path="/ui/keys", page=keys.list_keys),
        Route(name="create_key", method="POST", path="/ui/keys", page=keys.create_key, keeps_input=True),
        Route(name="rotate_key", method="POST", path="/ui/keys/{key}/rotate", page=keys.rotate_key),
        Route(name="revoke_key", method="POST", path="/ui/keys/{key}/revoke", page=keys.revoke_key),
        Route(name="webhooks", method="GET", path="/ui/webhooks", page=webhooks.list_webhooks),
        Route(name="event_types", method="GET", path="/ui/webhooks/event-types", page=webhooks.list_event_types),
        Route(name="webhook", method="GET", path=WEBHOOK, page=webhooks.show_webhook),
        Route(name="test_webhook", method="POST", path=f"{WEBHOOK}/test", page=webhooks.test),
        Route(name="delivery", method="GET", path=_DELIVERY, page=webhooks.show_delivery),
        Route(name="redeliver", method="POST", path=f"{_DELIVERY}/redeliver", page=webhooks.redeliver),
    )
