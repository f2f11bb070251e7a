"""The pages that show the keys of a sink as a tree. Each group has a page, which is read when the user opens the group."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from workspaced.core.sort_keys import natural_key
from workspaced.ui.addresses import address
from workspaced.ui.entries import EMPTY_SINK
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView, page_view
from workspaced.ui.workspaces import SECTION

_SEPARATOR: Final = re.compile(r"[./]")


async def show_groups(request: PageRequest) -> PageView:
    """Show the groups and entries directly below a prefix. If they fit on one page, they are in natural order (2 before 10)."""
    workspace_id, sink_name = request.names["workspace"], request.names["sink"]
    workspace = await request.workspace()
    sink = (await request.get("workspace", workspace_id, "data-sink", sink_name, take="1")).record
    prefix, cursor = request.query.get("prefix", ""), request.query.get("cursor", "")
    query = {"prefix": prefix, **({"cursor": cursor} if cursor else {})}
    found = await request.get("workspace", workspace_id, "data-sink-groups", sink_name, **query)
    here = ("workspaces", workspace_id, "sinks", sink_name)
    following = found.next_cursor
    ends = [0, *(separator.end() for separator in _SEPARATOR.finditer(prefix))]
    groups = found.value
    if not cursor and not following:
        groups = sorted(groups, key=lambda one: natural_key(one["prefix"] or one["entry"]["key"]))
    return page_view(
        "groups.html",
        f"Groups of {sink['label']}",
        SECTION,
        workspace=workspace,
        sink=sink,
        prefix=prefix,
        parts=[(prefix[:end], prefix[begin:end]) for begin, end in pairwise(ends)],
        groups=groups,
        empty=EMPTY_SINK,
        is_later=bool(cursor),
        groups_link=address(*here, "groups"),
        next=address(*here, "groups", prefix=prefix, cursor=following) if following else "",
        base=address(*here, "entries"),
    )
