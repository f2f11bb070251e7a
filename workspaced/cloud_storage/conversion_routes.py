"""CS5: have a conversion done once more."""

from __future__ import annotations

from workspaced.access.permissions import FILES_WRITE
from workspaced.cloud_storage import conversion_store, happenings, permission
from workspaced.cloud_storage.rules import read_force
from workspaced.cloud_storage.upload_routes import COLLECTION
from workspaced.settings import Limits
from workspaced.storage.port import Transaction
from workspaced.web.answers import NO_CONTENT, Answer
from workspaced.web.operations import Call, Operation, Work


def retry_conversion(call: Call) -> Work:
    """CS5. No body at all is an empty one; what is to be done anyway is not done twice (C7)."""
    force, ignored = read_force(call.json() if call.body else {})

    def act(tx: Transaction) -> Answer:
        file = permission.writable_file(tx, call)
        if file.conversion is not None and conversion_store.ask_again(tx, file.conversion, force=force, now=call.now):
            happenings.note_retry(tx, call, file)
        return NO_CONTENT

    return Work(act=act, ignored=ignored)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's row."""
    return (
        Operation(
            name="cloud_storage.retry_conversion",
            method="POST",
            path=f"{COLLECTION}/retry-conversion/{{file}}",
            scope=FILES_WRITE,
            anywhere=True,
            prepare=retry_conversion,
            body_bytes=limits.body_bytes,
        ),
    )
