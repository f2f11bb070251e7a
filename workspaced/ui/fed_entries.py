"""Warnings on pages where users change entries that a pipeline feeds. Performs no I/O.

The change itself does not make the pipeline write again. The pipeline writes when the value in its source changes, or when a
drift check finds the difference and repairs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.core.origin_phrase import origin_phrase

_WHEN: Final = "when {source} gives another value, or when a drift check repairs the difference."
SEVERAL: Final = f"Pipelines wrote some of these entries, and overwrite your change {_WHEN.format(source='a source')}"
_SEVERAL_PROTECTED: Final = "Pipelines wrote some of these entries, and this data sink protects them from changes."
ANY: Final = f"If a pipeline wrote the entry, it overwrites your change {_WHEN.format(source='its source')}"


def feeder(entry: Mapping[str, Any]) -> str:
    """Return the pipeline or program that feeds the entry, as the beginning of a sentence; empty if the entry has no origin."""
    origin = _last_origin(entry)
    if origin is None:
        return ""
    return f"The pipeline “{origin['pipeline']}”" if origin["pipeline"] else f"The program “{origin['source']}”"


def consequence(sink: Mapping[str, Any]) -> str:
    """Return the rest of the sentence that `feeder` begins. ``sink`` is the record of the entry's data sink."""
    if sink["protectFedEntries"]:
        return "wrote this entry, and this data sink protects it: change its source, or edit the data sink to protect no entries."
    return f"wrote this entry, and overwrites your change {_WHEN.format(source='its source')}"


def warning(sink: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the warning before a change of an entry; empty if no pipeline or program feeds the entry."""
    origin = _last_origin(entry)
    if origin is None:
        return ""
    place = origin_phrase(source=origin["source"], file=origin["file"], row=origin["row"], pipeline=None)
    return f"{feeder(entry)} {consequence(sink)} Its last value came {place}."


def warning_of_several(sink: Mapping[str, Any]) -> str:
    """Return the warning before a change of several entries, if at least one entry has a `feeder`."""
    return _SEVERAL_PROTECTED if sink["protectFedEntries"] else SEVERAL


def _last_origin(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return entry.get("formerOrigin") or entry.get("origin")
