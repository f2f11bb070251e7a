"""Sentences of the pages before a change of entries that a pipeline feeds. Performs no I/O.

A pipeline does not write again because of the change: it writes when the value in its source changes, or when a drift check
finds the difference and repairs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.core.origin_phrase import origin_phrase

_WHEN: Final = "when {source} gives another value or a drift check repairs it."
SEVERAL: Final = f"Pipelines wrote some of these entries, and write over your change {_WHEN.format(source='a source')}"
_SEVERAL_PROTECTED: Final = "Pipelines wrote some of these entries, and this data sink protects them from changes."
ANY: Final = f"An entry that a pipeline wrote is written again {_WHEN.format(source='its source')}"


def feeder(entry: Mapping[str, Any]) -> str:
    """Return who wrote the entry with an origin last, as the beginning of a sentence; empty if its record has no origin."""
    origin = _last_origin(entry)
    if origin is None:
        return ""
    return f"The pipeline “{origin['pipeline']}”" if origin["pipeline"] else f"The program “{origin['source']}”"


def consequence(sink: Mapping[str, Any]) -> str:
    """Return the rest of the sentence that `feeder` begins; ``sink``: its record with the setting."""
    if sink["protectFedEntries"]:
        return "wrote this entry, and this data sink protects it: change its source, or edit the data sink to protect no entries."
    return f"wrote this entry, and writes over your change {_WHEN.format(source='its source')}"


def warning(sink: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the sentence that a user must read before a change of an entry; empty: there is none."""
    origin = _last_origin(entry)
    if origin is None:
        return ""
    place = origin_phrase(source=origin["source"], file=origin["file"], row=origin["row"], pipeline=None)
    return f"{feeder(entry)} {consequence(sink)} Its last value came {place}."


def warning_of_several(sink: Mapping[str, Any]) -> str:
    """Return the sentence that a user must read before a change of several entries, if one of them has a `feeder`."""
    return _SEVERAL_PROTECTED if sink["protectFedEntries"] else SEVERAL


def _last_origin(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return entry.get("formerOrigin") or entry.get("origin")
