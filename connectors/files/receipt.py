"""The receipt of an acknowledged file: its outcome, for the person who dropped it and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice

import msgspec

from connectors.files.identity import Identity
from ingestd.sdk import NOTICE, Acknowledgement, Rejected, counted

SUFFIX = ".receipt.json"
MOST_LISTED = 1_000
"""The maximum number of rejected rows in a receipt. The quarantine file holds all rejected rows."""

_OWN_FACTS = frozenset({"file.name", "file.stem", "file.path", "file.size", "file.mtime", "file.sha256", "file.owner"})


class AcknowledgedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file from which every record is delivered or rejected. ``name`` is its path below the drop folder."""

    name: str
    identity: Identity
    sha256: str
    acknowledgement: Acknowledgement


def build_receipt(file: AcknowledgedFile, *, disposition: str, quarantine: str = "", remark: str = "") -> bytes:
    """Return the receipt as JSON; its first line is the summary for people.

    ``disposition``: a sentence about where the file is now. ``quarantine``: the path of the quarantine file. ``remark``: a
    sentence about the rejected rows.
    """
    acknowledgement = file.acknowledgement
    facts = acknowledgement.facts
    listed = [_describe_reject(reject) for reject in islice(acknowledgement.rejects(), MOST_LISTED)]
    receipt = {
        "summary": _summarize(file, disposition=disposition, quarantine=quarantine, remark=remark),
        "file": file.name,
        "sha256": file.sha256,
        "size": file.identity.size,
        "owner": facts.get("file.owner", ""),
        "modified": facts.get("file.mtime", ""),
        "found": {key.removeprefix("file."): value for key, value in facts.items() if key not in _OWN_FACTS},
        "rows": None if _is_known_content(acknowledgement) else acknowledgement.records,
        "entries": {
            "created": acknowledgement.created,
            "updated": acknowledgement.updated,
            "unchanged": acknowledgement.unchanged,
            "removed": acknowledgement.removed,
        },
        "without_value": acknowledgement.valueless,
        "rejected": {
            "count": acknowledgement.rejected,
            "rows_in": quarantine,
            "listed": listed,
            "more": acknowledgement.rejected - len(listed),
        },
        "pipeline": acknowledgement.pipeline,
        "sink": acknowledgement.sink,
        "configuration": acknowledgement.digest,
        "run": acknowledgement.run,
        "started": _format_time(acknowledgement.started),
        "ended": _format_time(acknowledgement.ended),
    }
    return (json.dumps(receipt, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")


def _summarize(file: AcknowledgedFile, *, disposition: str, quarantine: str, remark: str) -> str:
    """Return the summary for people: what was read, where the file is, and what to do."""
    name, acknowledgement = file.name, file.acknowledgement
    if _is_known_content(acknowledgement):
        parts = [f"{name} has the same content as when it was read before; nothing had to be sent"]
    else:
        counts = [
            f"{getattr(acknowledgement, what)} {what}"
            for what in ("created", "updated", "unchanged", "removed")
            if getattr(acknowledgement, what)
        ]
        parts = [f"{name}: {counted(acknowledgement.records, 'row')} read, entries: {', '.join(counts) or 'none'}"]
        if 0 < acknowledgement.valueless < acknowledgement.records:
            parts.append(f"{acknowledgement.valueless} without a value")
    if acknowledgement.rejected:
        parts.append(f"{acknowledgement.rejected} rejected")
    line = f"{'; '.join(parts)}. {disposition}"
    if NOTICE in acknowledgement.facts:
        line += f" {acknowledgement.facts[NOTICE]}"
    if quarantine:
        line += f" The rejected rows are in {quarantine}: correct them and drop that file."
    return f"{line} {remark}".strip()


def _is_known_content(acknowledgement: Acknowledgement) -> bool:
    """Return True if the content was the same as at the previous reading, so no rows were read."""
    return not acknowledgement.records and not acknowledgement.facts


def _describe_reject(reject: Rejected) -> dict[str, object]:
    described: dict[str, object] = {"row": reject.position, "reason": reject.reason}
    if reject.field:
        described["field"] = reject.field
    if reject.key:
        described["key"] = reject.key
    if reject.status is not None:
        described["status"] = reject.status
    return described


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
