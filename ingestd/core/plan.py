"""Which operation serves an entry, and which one follows when the service knows better.

Where the service announces bulk, one mass-update carries creates, updates and deletes alike. Where it knows only the
document, an entry takes the steps of this table:

========  ===========================  ============================================
kind      first step                   and then
========  ===========================  ============================================
create    create the entry             there already: update it
update    mass-update it, or patch it  not there: create it; other type: patch it
delete    delete it                    not there: done
========  ===========================  ============================================

Which of the two an update takes is configured (``update_with``): ``mass`` is one address for all entries and what the document
means for values that change often; ``patch`` sets value and data type at once, at an address that holds the key.

The document's mass body has a key and a value but no data type, while its answer names the type. So an update is one
mass-update, and only where the answer shows another type than wanted (or where the value is null, which a mass-update
can't say) a PATCH with value and data type follows: one request for nearly every entry, two for a changed type.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ingestd.core.outcome import Remedy

EntryKind: TypeAlias = Literal["create", "update", "delete"]

Step: TypeAlias = Literal["create_entry", "mass_update_entry", "patch_entry", "delete_entry"]

UpdateWith: TypeAlias = Literal["mass", "patch"]
"""The operation by which an entry that is known to the service is updated in the single form."""

Then: TypeAlias = Step | Literal["done", "park", "stop", "sink?"]
"""The next step, or the end: done · park the entry · stop the lane, the entry stays pending · ``sink?``: either the key or
the whole sink is missing, look whether the sink is there."""

MOST_STEPS = 5
"""More steps than this for one entry mean that somebody else keeps changing it: leave it pending and back off."""

_AFTER: dict[tuple[Step, Remedy], Then] = {
    ("create_entry", "conflict"): "mass_update_entry",
    ("create_entry", "missing"): "sink?",
    ("mass_update_entry", "missing"): "create_entry",
    ("patch_entry", "missing"): "create_entry",
    ("delete_entry", "missing"): "done",
}
_ALWAYS: dict[Remedy, Then] = {
    "none": "done",
    "park": "park",
    "shrink": "park",
    "retry": "stop",
    "pause": "stop",
    "missing": "sink?",
    "conflict": "stop",
}


def first_step(kind: EntryKind, *, value_is_null: bool, update_with: UpdateWith = "mass") -> Step:
    """The operation to begin with, in the single form."""
    if kind == "create":
        return "create_entry"
    if kind == "delete":
        return "delete_entry"
    return _update(value_is_null, update_with)


def after(step: Step, remedy: Remedy, *, value_is_null: bool, update_with: UpdateWith = "mass") -> Then:
    """What follows a step that came to ``remedy``."""
    then = _AFTER.get((step, remedy)) or _ALWAYS[remedy]
    return _update(value_is_null, update_with) if then == "mass_update_entry" else then


def _update(value_is_null: bool, update_with: UpdateWith) -> Step:
    # A mass-update can't say null.
    return "patch_entry" if value_is_null or update_with == "patch" else "mass_update_entry"


def needs_retype(*, wanted: str | None, answered: str | None) -> bool:
    """Whether a mass-update left another data type behind than wanted; a service that names none can't be corrected."""
    return wanted is not None and answered is not None and wanted != answered
