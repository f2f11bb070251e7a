"""The restoration of entries from a comparison of two moments. Entries that differ from the later moment stay unchanged."""

from __future__ import annotations

from workspaced.security.permissions import DATA_SINKS_WRITE
from workspaced.ui.edit.bulk_change import ConditionalChange, change_entries, changed_view, digest_of
from workspaced.ui.edit.sinks import sink_address, sink_path, sink_trail
from workspaced.ui.history import compare
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.renderer import PageView


async def restore_entries(request: PageRequest) -> PageView:
    """Write the values of the earlier moment to the selected keys, and show the results.

    A key has a conflict if its entry differs from the value that the comparison shows at the later moment.

    Raises:
        PageRefused: nothing is selected, or the API responds with an error.
    """
    form = request.form
    workspace = await request.workspace()
    sink = (await request.get(*sink_path(request), take="1")).record
    found = (await compare(request, form.get("from", ""), form.get("to", ""), form.get("cursor", ""))).record
    selected = set(form.get("key", "").split("\n")) - {""}
    known = {row["key"]: row for row in found["differences"] if row["effect"] != "unknown"}
    if "all" in form:
        chosen = [row for row in known.values() if row["before"] or request.may(DATA_SINKS_WRITE)]
    else:
        chosen = [row for key, row in known.items() if key in selected]
    lost = [] if "all" in form else sorted(selected - set(known))
    if not chosen and not lost:
        raise PageRefused(400, "Nothing selected", "Select the entries to restore, then try again.")
    changes = [
        ConditionalChange(key=row["key"], expected=digest_of(row["after"]), wanted=row["before"]) for row in chosen
    ]
    return changed_view(
        request,
        f"Restored entries of {sink['label']}",
        await change_entries(request, changes),
        done="restored",
        trail_links=sink_trail(workspace, sink),
        lost=lost,
        since=found["since"],
        again=sink_address(request, "history", **{"from": found["since"].rstrip("Z")}),
    )
