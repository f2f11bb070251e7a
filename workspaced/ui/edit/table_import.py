"""The import of a table into a sink: the user pastes a table or chooses a file, sees a preview, and applies the table.

The table is one bulk change, and the preview is a dry run of this change by the API. A table is applied only if a new dry run
has the same result as the preview.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from workspaced.core.json_body import encode
from workspaced.core.problems import Invalid, Problem
from workspaced.core.table_file import TableFile
from workspaced.http.bodies import read_body
from workspaced.http.responses import Response, json_response
from workspaced.ui.edit.bulk_change import ChangedRow, changed_view
from workspaced.ui.edit.form import SHOWN, checked, plain_line_ends
from workspaced.ui.edit.sinks import sink_address, sink_path, sink_trail
from workspaced.ui.edit.table import (
    KEY_AND_VALUE,
    ONE_ROW_EACH,
    TableItem,
    TableReading,
    cells_of,
    description,
    guess,
    items_of,
    texts_among_numbers,
)
from workspaced.ui.fed_entries import feeder, warning_of_several
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.renderer import PageView, title_of
from workspaced.ui.workspaces import SECTION

P = ParamSpec("P")
T = TypeVar("T")
ReadTableFile: TypeAlias = Callable[[str, bytes], Awaitable[TableFile]]
"""A function that returns the text of a table file. It gets the name and the bytes of the file, and may raise `Invalid`."""
TABLE_BYTES: Final = 4_194_304
_SHOWN_ROWS: Final = 200
_WRITTEN: Final = "The table was written: {created} new, {updated} changed, {unchanged} unchanged, {rejected} rejected."
_ORDER: Final = ("rejected", "updated", "created", "unchanged")


class TableImport:
    """The page for imports. A table may have at most ``most`` entries."""

    def __init__(self, read_file: ReadTableFile, *, most: int) -> None:
        self._read_file = read_file
        self._most = most
        self._turn = asyncio.Semaphore(1)

    async def _on_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read a table, which may take seconds, on a thread, one table at a time. So other requests continue."""
        async with self._turn:
            return await asyncio.to_thread(work, *args, **kwargs)

    async def read(self, request: PageRequest) -> Response:
        """Return the text of a table file, and the name of its sheet. The body is the file; the query has the file name.

        Raises:
            TooLargeProblem: the file is larger than the limit for a table.
            Invalid: the file is no table.
        """
        content = await read_body(request.body, request.headers, limit=TABLE_BYTES)
        table = await self._read_file(request.query.get("name", ""), content)
        return json_response({"text": table.text, "sheet": table.sheet, "others": table.others})

    async def page(self, request: PageRequest) -> PageView | Response:
        """Show the form, or preview or apply the table that the form has."""
        workspace = await request.workspace()
        sink = (await request.get(*sink_path(request), take="1", origin="true")).record
        text = plain_line_ends(request.form.get("table", ""))  # a browser sends each line end of a field as CR LF
        values: dict[str, Any] = {
            "sink": sink,
            "trail": sink_trail(workspace, sink),
            "action": sink_address(request, "import"),
            "back": sink_address(request),
            "text": text,
            "most": self._most,
            "shapes": (
                (KEY_AND_VALUE, "each row is an entry"),
                (ONE_ROW_EACH, "each row is an item, and each column has a value of the item"),
            ),
            "reading": TableReading(shape=KEY_AND_VALUE, has_header=False, decimal_comma=False),
            "decided": "",
            "fed": warning_of_several(sink),
            "problem": "",
            "preview": None,
        }
        status = 200
        if request.method == "POST":
            try:
                rows = await self._on_thread(cells_of, text)
                reading = _reading(request.form) if "shape" in request.form else await self._on_thread(guess, rows)
                values["reading"] = reading
                values["decided"] = await self._on_thread(description, rows, reading)
                items = await self._on_thread(items_of, rows, reading, most=self._most)
                preview = await _preview(request, items)
                values["preview"] = preview
                if "apply" in request.form:
                    if preview["shown"] == request.form.get(SHOWN):
                        return changed_view(
                            request,
                            f"Imported entries of {sink['label']}",
                            await _apply(request, preview),
                            done="imported",
                            trail_links=values["trail"],
                            sentence=_WRITTEN.format(**preview["counts"]),
                            undo_words="Undo the import",
                        )
                    values["problem"] = (
                        "The entries or the table were changed since this preview, so nothing was written. Check it again."
                    )
                    status = 409
            except PageRefused as refused:
                values["problem"], status = refused.sentence, refused.status
            except Problem as problem:
                values["problem"], status = problem.detail, problem.status
        return PageView(
            template="edit/import.html",
            title=title_of("Import a table", sink["label"], workspace["label"]),
            section=SECTION,
            values=values,
            status=status,
        )


def _reading(form: Mapping[str, str]) -> TableReading:
    shape = form["shape"]
    if shape not in {KEY_AND_VALUE, ONE_ROW_EACH}:
        raise Invalid("bad_form", "The page sent an unknown shape of tables. Reload it and try again.")
    return TableReading(
        shape=shape,
        has_header=bool(checked(form, "header")),
        decimal_comma=bool(checked(form, "comma")),
        first_row=_row_number(form.get("first", "")),
    )


def _row_number(text: str) -> int:
    """Return the number of the first row of a table; 1 if the field is empty."""
    if not text.strip():
        return 1
    if not (text.strip().isascii() and text.strip().isdigit() and len(text.strip()) < 8 and int(text)):
        raise Invalid("bad_form", "Type the number of the row in which the table begins, 1 or higher.")
    return int(text)


async def _preview(request: PageRequest, items: Sequence[TableItem]) -> dict[str, Any]:
    """Return the values of the preview, which describe what the table would change.

    ``rows``: the first rows with their effects. ``shown``: a digest of all rows. ``items``: the items that change something.
    ``texts``: the rows with a text in a column of numbers. ``present``: the present entry of each key. ``kept``: the rows that
    change nothing. ``is_fed``: a pipeline or program feeds an entry that would change.
    """
    done = await request.send(
        "POST",
        *sink_path(request),
        "mass",
        body=[one.item for one in items],
        query={"dryRun": "true", "origin": "true"},
    )
    texts = texts_among_numbers(items)
    rows = [
        {
            "row": one.row,
            "is_text": index in texts,
            "key": one.item["key"],
            "value": one.item["value"],
            "before": (result.get("entry") or {}).get("value"),
            "is_new": not result.get("entry"),
            "effect": result.get("effect", "rejected"),
            "error": (result.get("error") or {}).get("detail", "").removeprefix(f"/{index}/"),
        }
        for index, (one, result) in enumerate(zip(items, done.record["results"], strict=True))
    ]
    present: dict[str, Any] = {}  # if a key occurs twice, the first result has the entry before the bulk
    for one, result in zip(items, done.record["results"], strict=True):
        present.setdefault(one.item["key"], result.get("entry"))
    kept = [
        ChangedRow(key=row["key"], outcome=row["effect"], wanted=present[row["key"]], present=None, reason=row["error"])
        for row in rows
        if row["effect"] in {"unchanged", "rejected"}
    ]
    changing = [one.item for one, row in zip(items, rows, strict=True) if row["effect"] in {"created", "updated"}]
    counts = Counter(row["effect"] for row in rows)
    rows.sort(key=lambda row: (row["effect"] != "rejected", not row["is_text"], _ORDER.index(row["effect"])))
    return {
        "counts": {effect: counts[effect] for effect in _ORDER},
        "items": changing,
        "present": present,
        "kept": kept,
        "is_fed": any(feeder(present[item["key"]] or {}) for item in changing),
        "texts": [
            f"{items[index].row}" + (f" ({column})" if (column := items[index].column) else "")
            for index in sorted(texts)
        ],
        "rows": rows[:_SHOWN_ROWS],
        "hidden": max(len(rows) - _SHOWN_ROWS, 0),
        "shown": hashlib.sha256(encode(rows)).hexdigest()[:32],
    }


async def _apply(request: PageRequest, preview: Mapping[str, Any]) -> list[ChangedRow]:
    """Write all items that change something, or none if one fails. Return the result of each entry."""
    items = preview["items"]
    written: dict[str, ChangedRow] = {}
    if items:
        entries = (await request.send("POST", *sink_path(request), "mass", body=items)).value
        for item, entry in zip(items, entries, strict=True):
            key = item["key"]
            written[key] = ChangedRow(key=key, outcome="done", wanted=entry, present=preview["present"][key])
    return [*written.values(), *(row for row in preview["kept"] if row.key not in written)]
