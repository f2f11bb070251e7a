"""The operations that deliver an entry, and the operation that follows each outcome.

If the service announces bulk, one mass-update contains creates, updates and deletes. If the service offers only the documented
interface, each entry takes the steps of this table:

========  ===========================  ==================================================
kind      first step                   next step
========  ===========================  ==================================================
create    create the entry             it exists: update it
update    mass-update it, or patch it  it does not exist: create it; other type: patch it
delete    delete it                    it does not exist: done
========  ===========================  ==================================================

``update_with`` selects the operation of an update. ``mass`` has one address for all entries; the interface document intends it
for values that change often. ``patch`` sets value and data type together, at an address that contains the key.

The body of a documented mass-update has a key and a value but no data type; its response has the data type. So an update is one
mass-update. A PATCH with value and data type follows only if the response has a type that is not wanted. A null value is always
sent by PATCH, because a mass-update cannot express it. So nearly every entry takes one request, or two if its type changes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ingestd.core.outcome import Remedy

EntryKind: TypeAlias = Literal["create", "update", "delete"]

Step: TypeAlias = Literal["create_entry", "mass_update_entry", "patch_entry", "delete_entry"]

UpdateWith: TypeAlias = Literal["mass", "patch"]
"""The operation that updates an existing entry in the single form."""

NextStep: TypeAlias = Step | Literal["done", "reject", "stop", "check_sink"]
"""The next step, or an end. done: delivered · reject: reject the entry · stop: block the lane, the entry stays pending ·
check_sink: the key or the whole sink is missing, so check whether the sink exists."""

MAX_STEPS = 5
"""If an entry takes more steps, another program is changing it. The entry stays pending, and the lane backs off."""

_BY_STEP: dict[tuple[Step, Remedy], NextStep] = {
    ("create_entry", "conflict"): "mass_update_entry",
    ("create_entry", "missing"): "check_sink",
    ("mass_update_entry", "missing"): "create_entry",
    ("patch_entry", "missing"): "create_entry",
    ("delete_entry", "missing"): "done",
}
_BY_REMEDY: dict[Remedy, NextStep] = {
    "none": "done",
    "reject": "reject",
    "shrink": "reject",
    "retry": "stop",
    "pause": "stop",
    "missing": "check_sink",
    "conflict": "stop",
}


def first_step(kind: EntryKind, *, value_is_null: bool, update_with: UpdateWith = "mass") -> Step:
    """Return the first operation for an entry in the single form."""
    if kind == "create":
        return "create_entry"
    if kind == "delete":
        return "delete_entry"
    return _update(value_is_null, update_with)


def next_step(
    step: Step,
    remedy: Remedy,
    *,
    value_is_null: bool,
    update_with: UpdateWith = "mass",
    wanted: str | None = None,
    found: str | None = None,
) -> NextStep:
    """Return what follows ``step``, which ended with ``remedy``. ``found``: the data type in the response, if any."""
    following = _BY_STEP.get((step, remedy)) or _BY_REMEDY[remedy]
    if following == "done" and step == "mass_update_entry" and needs_retype(wanted=wanted, found=found):
        return "patch_entry"
    return _update(value_is_null, update_with) if following == "mass_update_entry" else following


def _update(value_is_null: bool, update_with: UpdateWith) -> Step:
    # A mass-update cannot express null.
    return "patch_entry" if value_is_null or update_with == "patch" else "mass_update_entry"


def needs_retype(*, wanted: str | None, found: str | None) -> bool:
    """Return whether a mass-update left another data type than wanted; False if the response has no type."""
    return wanted is not None and found is not None and wanted != found
