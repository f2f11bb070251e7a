"""Changes of several entries, and the form that undoes them. An entry is changed only if it is as the page showed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote_plus

import msgspec

from workspaced.core.problems import PreconditionFailedProblem
from workspaced.ui.edit.sinks import sink_address, sink_path
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.renderer import PageView, entry_digest, entry_values
from workspaced.ui.workspaces import SECTION

Outcome: TypeAlias = Literal["done", "unchanged", "changed", "rejected"]
EntryState: TypeAlias = Mapping[str, Any] | None
"""The value and data type of an entry, perhaps with further members; None: there is no entry."""
_SHOWN_ROWS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalChange:
    """A change of a key. ``expected``: the digest of the entry that the user saw; empty: the user saw no entry.

    ``wanted``: the new value and data type; None: delete the entry. Without ``value``, the entry keeps its present value.
    """

    key: str
    expected: str
    wanted: EntryState


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow:
    """The result of a change.

    ``present``: the entry before the change; None: there was no entry. ``reason``: why the change was rejected.
    """

    key: str
    outcome: Outcome
    wanted: EntryState
    present: EntryState
    reason: str = ""


class _UndoItem(msgspec.Struct, forbid_unknown_fields=True):
    """The undo of a change of one key. ``left``: the digest of the entry after the change.

    ``value`` and ``data_type``: the entry before the change. ``data_type`` None: there was no entry.
    """

    key: str
    left: str
    value: str | None
    data_type: str | None


def digest_of(state: EntryState) -> str:
    """Return the digest of an entry; empty if there is none."""
    return "" if state is None else entry_digest(state)


async def change_entries(request: PageRequest, changes: Sequence[ConditionalChange]) -> list[ChangedRow]:
    """Write each change if its entry is still as the user saw it. Return the result of each change.

    All texts and deletions are one mass update, so they are written together or not at all. Each null is written alone,
    because a mass update can't have a null.

    Raises:
        PageRefused: the API responds with an error.
    """
    rows = await _classified(request, changes) if changes else []
    wanted = [row for row in rows if row.outcome == "done"]
    if items := [_item(row.key, row.wanted) for row in wanted if not _is_null(row.wanted)]:
        await request.send("POST", *sink_path(request), "mass", body=items, query={"create": "true"})
    late = {row.key for row in wanted if _is_null(row.wanted) and not await _write_null(request, row)}
    return [row if row.key not in late else replace(row, outcome="changed") for row in rows]


def changed_view(
    request: PageRequest, title: str, rows: Sequence[ChangedRow], *, done: str, offers_undo: bool = True, **more: object
) -> PageView:
    """Return the page with the results of the changes. ``done``: what was done with the entries, such as ``deleted``.

    ``more``: values of the template; ``trail_links`` is required.
    """
    outcomes = {row.outcome for row in rows}
    groups = {
        name: [row for row in rows if row.outcome == name] for name in ("done", "unchanged", "changed", "rejected")
    }
    undo = undo_field(groups["done"]) if offers_undo and groups["done"] else ""
    is_too_long = len(quote_plus(undo)) > UNDO_BYTES
    values: dict[str, object] = {
        "rows": groups,
        "most": _SHOWN_ROWS,
        "done": done,
        "undo": "" if is_too_long else undo,
        "is_too_long": is_too_long,
        "undo_words": "Undo",
        "undo_address": sink_address(request, "selection"),
        "changes_address": sink_address(request, "changes"),
        "base": sink_address(request, "entries"),
        "back": sink_address(request),
        "lost": [],
        "since": "",
        "again": "",
        "sentence": "",
        **more,
    }
    return PageView(
        template="edit/changed_entries.html",
        title=title,
        section=SECTION,
        values=values,
        status=200 if outcomes & {"done", "unchanged"} else 409,
    )


UNDO_BYTES: Final = 12_000_000
"""The maximum size of the undo field (`undo_field`), in bytes of form data."""


def undo_field(rows: Iterable[ChangedRow]) -> str:
    """Return the value of the form field with which the written rows can be undone."""
    items = []
    for row in rows:
        value, data_type = (None, None) if row.present is None else (row.present["value"], row.present["dataType"])
        items.append(_UndoItem(key=row.key, left=digest_of(row.wanted), value=value, data_type=data_type))
    return msgspec.json.encode(items).decode()


def undo_changes(field: str) -> list[ConditionalChange]:
    """Return the changes in a field from `undo_field`.

    Raises:
        PageRefused: the text does not come from `undo_field`.
    """
    try:
        items = msgspec.json.decode(field, type=list[_UndoItem])
    except msgspec.DecodeError as error:
        raise PageRefused(400, "Not done", "The page sent an unknown undo. Reload it and try again.") from error
    return [
        ConditionalChange(
            key=item.key,
            expected=item.left,
            wanted=None if item.data_type is None else {"value": item.value, "dataType": item.data_type},
        )
        for item in items
    ]


async def _classified(request: PageRequest, changes: Sequence[ConditionalChange]) -> list[ChangedRow]:
    """Return the outcome that each change would have. A dry run reads all present entries at the same time."""
    items = [_item(change.key, change.wanted) for change in changes]
    done = await request.send(
        "POST", *sink_path(request), "mass", body=items, query={"dryRun": "true", "create": "true"}
    )
    rows = []
    for change, result in zip(changes, done.record["results"], strict=True):
        present = result.get("entry")
        wanted = change.wanted
        if wanted is not None and "value" not in wanted:
            wanted = None if present is None else {**entry_values(present), **wanted}
        reason = ""
        if "error" in result:
            outcome: Outcome = "rejected"
            reason = result["error"]["detail"]
        elif digest_of(present) == digest_of(wanted) and (present is None) == (change.wanted is None):
            outcome = "unchanged"
        else:
            outcome = "done" if digest_of(present) == change.expected else "changed"
        rows.append(ChangedRow(key=change.key, outcome=outcome, wanted=wanted, present=present, reason=reason))
    return rows


async def _write_null(request: PageRequest, row: ChangedRow) -> bool:
    """Write a null. Return False if it was not written because the entry has changed since the dry run."""
    try:
        if row.present is None:
            await request.send("POST", *sink_path(request), body={"key": row.key, **entry_values(row.wanted or {})})
            return True
        found = await request.get(*sink_path(request), row.key)
        if digest_of(found.record) != digest_of(row.present):
            return False
        body = entry_values(row.wanted or {})
        await request.send("PATCH", *sink_path(request), row.key, body=body, if_match=found.headers["etag"])
    except PageRefused as refused:
        if refused.status not in {404, PreconditionFailedProblem.status} and refused.code != "duplicate_key":
            raise
        return False
    return True


def _item(key: str, state: EntryState) -> dict[str, Any]:
    """Return the item of a mass update for a state. In a dry run, a null or a kept value is sent as an empty text."""
    if state is None:
        return {"key": key, "delete": True}
    return {"key": key, "value": state.get("value") or "", "dataType": state["dataType"]}


def _is_null(state: EntryState) -> bool:
    return state is not None and state["value"] is None
