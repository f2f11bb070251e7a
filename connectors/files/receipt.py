"""A file's receipt: what became of it, for the person who dropped it and for a program that looks after them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice

from ingestd.sdk import NOTICE, Rejected, Settlement

SUFFIX = ".receipt.json"
REASONS = 1_000
"""So many rejected rows are listed; the quarantine file holds all of them."""

_OWN = frozenset({"file.name", "file.stem", "file.path", "file.size", "file.mtime", "file.sha256", "file.owner"})


def receipt(
    settlement: Settlement,
    *,
    name: str,
    put: str,
    sha256: str,
    size: int,
    quarantine: str = "",
    remark: str = "",
) -> bytes:
    """The receipt as JSON, its first line the one for people.

    ``put``: where the file went, as the end of a sentence. ``quarantine``: where its rejected rows are; ``remark``: what is to be
    said about them.
    """
    facts = settlement.facts
    listed = [_told(one) for one in islice(settlement.rejects(), REASONS)]
    told = {
        "summary": summary(settlement, name=name, put=put, quarantine=quarantine, remark=remark),
        "file": name,
        "sha256": sha256,
        "size": size,
        "owner": facts.get("file.owner", ""),
        "modified": facts.get("file.mtime", ""),
        "found": {key.removeprefix("file."): value for key, value in facts.items() if key not in _OWN},
        "rows": None if _is_known(settlement) else settlement.records,
        "entries": {
            "created": settlement.created,
            "updated": settlement.updated,
            "unchanged": settlement.unchanged,
            "removed": settlement.removed,
        },
        "rejected": {
            "count": settlement.rejected,
            "rows_in": quarantine,
            "listed": listed,
            "more": settlement.rejected - len(listed),
        },
        "pipeline": settlement.pipeline,
        "sink": settlement.sink,
        "configuration": settlement.digest,
        "run": settlement.run,
        "started": _time(settlement.started),
        "ended": _time(settlement.ended),
    }
    return (json.dumps(told, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")


def summary(settlement: Settlement, *, name: str, put: str, quarantine: str, remark: str) -> str:
    """The line for people."""
    if _is_known(settlement):
        said = [f"{name} holds what it held when it was read before; nothing had to be sent"]
    else:
        counts = [
            f"{getattr(settlement, what)} {what}"
            for what in ("created", "updated", "unchanged", "removed")
            if getattr(settlement, what)
        ]
        rows = "1 row" if settlement.records == 1 else f"{settlement.records} rows"
        said = [f"{name}: {rows} read, entries: {', '.join(counts) or 'none'}"]
    if settlement.rejected:
        said.append(f"{settlement.rejected} rejected")
    line = f"{'; '.join(said)}. {put}"
    if NOTICE in settlement.facts:
        line += f" {settlement.facts[NOTICE]}"
    if quarantine:
        line += f" The rejected rows are in {quarantine}: mend them and drop that file."
    return f"{line} {remark}".strip()


def _is_known(settlement: Settlement) -> bool:
    """Whether the reading found the very content of the one before, and so read no rows."""
    return not settlement.records and not settlement.facts


def _told(one: Rejected) -> dict[str, object]:
    told: dict[str, object] = {"row": one.position, "reason": one.reason}
    if one.field:
        told["field"] = one.field
    if one.key:
        told["key"] = one.key
    if one.status is not None:
        told["status"] = one.status
    return told


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
