"""Actions on the selected rows of a sink's page: replace a text, set the type, delete, undo, copy, export, plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import see_other
from workspaced.ui.edit.bulk_change import ConditionalChange, change_entries, changed_view, undo_changes
from workspaced.ui.edit.sinks import sink_address, sink_path, sink_trail
from workspaced.ui.entries import entry_range_of
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.plot import MOST_KEYS
from workspaced.ui.renderer import PageView, entry_values

_COPIED: Final = ("key", "value", "dataType")
_EXPORTED: Final = (*_COPIED, "createdAt", "updatedAt", "createdBy", "updatedBy")
_UNQUOTED: Final = frozenset({"dataType", "createdAt", "updatedAt"})
_CHANGES: Final[Mapping[str, str]] = {"replace": "changed", "type": "changed", "delete": "deleted", "undo": "undone"}


async def act_on_selection(request: PageRequest) -> PageView | Response:
    """Perform one action. The field ``row`` has a line for each selected row: the digest of the shown entry, a space, the key.

    Raises:
        PageRefused: nothing is selected, the action is unknown, or the API responds with an error.
    """
    form = request.form
    action = form.get("action", "")
    shown = {key: digest for line in form.get("row", "").split("\n") for digest, _, key in [line.partition(" ")] if key}
    if not shown and action != "undo":
        raise PageRefused(400, "Nothing selected", "Select rows by their boxes, then try again.")
    match action:
        case "plot":
            if len(shown) > MOST_KEYS:
                raise PageRefused(
                    400, "Not plotted", f"A plot has up to {MOST_KEYS} keys, and {len(shown)} are selected."
                )
            return see_other(sink_address(request, "plot", key=list(shown)))
        case "copy":
            return _table(_tab_separated(await _selected(request, list(shown))), "text/plain")
        case "csv":
            saved = ("Content-Disposition", 'attachment; filename="selection.csv"')
            return _table(_comma_separated(await _selected(request, list(shown))), "text/csv", saved)
        case "replace":
            changes = _replacements(await _selected(request, list(shown)), shown, form)
        case "type":
            wanted = {"dataType": form.get("dataType", "").strip()}
            changes = [ConditionalChange(key=key, expected=digest, wanted=wanted) for key, digest in shown.items()]
        case "delete":
            changes = [ConditionalChange(key=key, expected=digest, wanted=None) for key, digest in shown.items()]
        case "undo":
            changes = undo_changes(form.get("undo", ""))
        case _:
            raise PageRefused(400, "Not done", "The page sent an unknown action. Reload it and try again.")
    workspace = await request.workspace()
    sink = (await request.get(*sink_path(request), take="1")).record
    done = _CHANGES[action]
    return changed_view(
        request,
        f"{done.capitalize()} entries of {sink['label']}",
        await change_entries(request, changes),
        done=done,
        offers_undo=action != "undo",
        trail_links=sink_trail(workspace, sink),
    )


def _replacements(
    entries: Sequence[Mapping[str, Any]], shown: Mapping[str, str], form: Mapping[str, str]
) -> list[ConditionalChange]:
    """Return the changes that replace a text in the values that contain it.

    Raises:
        PageRefused: no value contains the text, or the text is empty.
    """
    replaced, replacement = form.get("replaced", ""), form.get("replacement", "")
    changes = [
        ConditionalChange(
            key=entry["key"],
            expected=shown[entry["key"]],
            wanted={**entry_values(entry), "value": entry["value"].replace(replaced, replacement)},
        )
        for entry in entries
        if replaced and replaced in (entry["value"] or "")
    ]
    if not changes:
        reason = f"No selected value has the text “{replaced}”." if replaced else "Type the text to replace."
        raise PageRefused(400, "Nothing replaced", reason)
    return changes


async def _selected(request: PageRequest, keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the present entries in the order of ``keys``. One request reads the page; other entries are read one by one."""
    entry_range = entry_range_of(request)
    found = (await request.get(*entry_range.path, **entry_range.query)).record["entries"]
    known = {entry["key"]: entry for entry in found}
    entries = []
    for key in keys:
        if key in known:
            entries.append(known[key])
            continue
        try:
            entries.append((await request.get(*entry_range.path, key)).record)
        except PageRefused as refused:
            if refused.status != 404:
                raise
    return entries


def _tab_separated(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries as text that spreadsheets can paste and the import can read. A null is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(_COPIED)
    writer.writerows([[entry[name] for name in _COPIED] for entry in entries])
    return text.getvalue()


def _comma_separated(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries in the form of the API's CSV (contract S16): a null is an empty field, an empty value is quoted."""

    def field(name: str, text: str | None) -> str:
        if text is None or name in _UNQUOTED:
            return text or ""
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(_EXPORTED), *(",".join(field(name, entry[name]) for name in _EXPORTED) for entry in entries)]
    return "".join(f"{line}\r\n" for line in lines)


def _table(text: str, media_type: str, *headers: tuple[str, str]) -> Response:
    return Response(
        status=200, headers=(("Content-Type", f"{media_type}; charset=utf-8"), *headers), body=text.encode()
    )
