"""Restore entries that a comparison of two moments shows, unless they were changed after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from workspaced.core.problems import PreconditionFailedProblem
from workspaced.security.permissions import DATA_SINKS_WRITE
from workspaced.ui.edit.sinks import sink_address, sink_path, sink_trail
from workspaced.ui.history import compare, history_records
from workspaced.ui.moments import milliseconds, moment_text
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.renderer import PageView, entry_values
from workspaced.ui.workspaces import SECTION

Outcome: TypeAlias = Literal["restored", "unchanged", "changed", "rejected"]
_State: TypeAlias = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredRow:
    """What became of a selected key. ``wanted``: its value at the earlier moment; None: it had no entry.

    ``present``: its entry before the restoration; None: it has none. ``reason``: why it is rejected.
    """

    key: str
    outcome: Outcome
    wanted: _State
    present: _State
    reason: str = ""


async def restore_entries(request: PageRequest) -> PageView:
    """Write the values of the earlier moment to the selected keys, and show what was done.

    A key has a conflict if its entry is not what the comparison shows at the later moment. All texts and removals are one bulk,
    so they are written together or not at all. A null is written alone, because a bulk can't have one.

    Raises:
        PageRefused: nothing is selected, or the API responds with an error.
    """
    form = request.form
    workspace, sink, _ = await history_records(request)
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
    rows = await _classified(request, chosen) if chosen else []
    wanted = [row for row in rows if row.outcome == "restored"]
    if items := [_item(row.key, row.wanted) for row in wanted if not _is_null(row.wanted)]:
        await request.send("POST", *sink_path(request), "mass", body=items, query={"create": "true"})
    late = {row.key for row in wanted if _is_null(row.wanted) and not await _write_null(request, row)}
    rows = [row if row.key not in late else _changed(row) for row in rows]
    outcomes = {row.outcome for row in rows}
    return PageView(
        template="edit/restored.html",
        title=f"Restored entries of {sink['label']}",
        section=SECTION,
        values={
            "trail_links": sink_trail(workspace, sink),
            "rows": rows,
            "lost": lost,
            "since": found["since"],
            "base": sink_address(request, "entries"),
            "again": sink_address(request, "history", **{"from": moment_text(milliseconds(found["since"]))}),
        },
        status=200 if outcomes & {"restored", "unchanged"} else 409,
    )


async def _classified(request: PageRequest, chosen: Sequence[Mapping[str, Any]]) -> list[RestoredRow]:
    """Return what to do with each row, from a dry run, which reads all present entries at one instant."""
    items = [_item(row["key"], row["before"]) for row in chosen]
    done = await request.send(
        "POST", *sink_path(request), "mass", body=items, query={"dryRun": "true", "create": "true"}
    )
    rows = []
    for row, result in zip(chosen, done.record["results"], strict=True):
        present = result.get("entry")
        reason = ""
        if "error" in result:
            outcome: Outcome = "rejected"
            reason = result["error"]["detail"]
        elif _state(present) == _state(row["before"]):
            outcome = "unchanged"
        else:
            outcome = "restored" if _state(present) == _state(row["after"]) else "changed"
        rows.append(RestoredRow(key=row["key"], outcome=outcome, wanted=row["before"], present=present, reason=reason))
    return rows


async def _write_null(request: PageRequest, row: RestoredRow) -> bool:
    """Write a null. Return whether it was written: the entry may have changed since it was read."""
    try:
        if row.present is None:
            await request.send("POST", *sink_path(request), body={"key": row.key, **entry_values(row.wanted or {})})
            return True
        found = await request.get(*sink_path(request), row.key)
        if _state(found.record) != _state(row.present):
            return False
        body = entry_values(row.wanted or {})
        await request.send("PATCH", *sink_path(request), row.key, body=body, if_match=found.headers["etag"])
    except PageRefused as refused:
        if refused.status not in {404, PreconditionFailedProblem.status} and refused.code != "duplicate_key":
            raise
        return False
    return True


def _changed(row: RestoredRow) -> RestoredRow:
    return RestoredRow(key=row.key, outcome="changed", wanted=row.wanted, present=row.present)


def _item(key: str, state: _State) -> dict[str, Any]:
    """Return the item of a bulk that writes a state; for a null one that only a dry run may have."""
    if state is None:
        return {"key": key, "delete": True}
    return {"key": key, "value": state["value"] or "", "dataType": state["dataType"]}


def _is_null(state: _State) -> bool:
    return state is not None and state["value"] is None


def _state(entry: _State) -> Mapping[str, Any] | None:
    return None if entry is None else entry_values(entry)
