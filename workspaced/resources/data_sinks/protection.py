"""Protection of entries that were written with an origin: a sink can refuse edits without an origin (contract M13).

Performs no I/O.
"""

from __future__ import annotations

from workspaced.core.problems import UnprocessableProblem
from workspaced.resources.data_sinks.origins import StoredOrigins, origin_text, split_origin
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink


def is_refused(sink: StoredSink, change: Change, before: StoredEntry | None) -> bool:
    """Whether the sink protects the present entry of the key from this change. A write of an equal value is no edit."""
    if not sink.protect_fed_entries or before is None or before.origin is None or change.origin is not None:
        return False
    after = (change.value, change.data_type or before.data_type)
    return change.remove or after != (before.value, before.data_type)


def refusal(entry: StoredEntry, origins: StoredOrigins) -> UnprocessableProblem:
    """Return the problem for a refused edit. ``origins`` must contain the origin of the entry.

    The problem is not a conflict, because programs read a conflict as "the key exists already".
    """
    fed = ""
    if entry.origin is not None:
        number, row = split_origin(entry.origin)
        fed = origin_text(origins[number], row)
    return UnprocessableProblem(
        "entry_protected",
        f"The entry '{entry.key}' was written {fed}, and this data sink protects such entries. Change the value in its source, "
        "or switch the setting protectFedEntries of the data sink off.",
    )
