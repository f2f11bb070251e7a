"""Retry a conversion (contract CS5): have a conversion done once more."""

from __future__ import annotations

from workspaced.core.members import read_body
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.responses import NO_CONTENT, Response
from workspaced.resources.cloud_storage import conversion_store, events, permission
from workspaced.resources.cloud_storage.rules import ConversionRetry
from workspaced.resources.cloud_storage.upload_routes import COLLECTION
from workspaced.resources.operation_rows import write_operation
from workspaced.security.permissions import FILES_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import Transaction


def retry_conversion(call: Call) -> Work:
    """Retry a conversion; one that is to be done anyway is not done twice (contract CS5, C7)."""
    retry, ignored = read_body(ConversionRetry, call.json() if call.body else {}, call.settings.limits)

    def act(tx: Transaction) -> Response:
        file = permission.writable_file(tx, call)
        if file.conversion is not None and conversion_store.ask_again(
            tx, file.conversion, force=retry.force, now=call.now
        ):
            events.note_retry(tx, call, file)
        return NO_CONTENT

    return Work(act=act, ignored=ignored)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's row."""
    return (
        write_operation(
            "cloud_storage.retry_conversion",
            "POST",
            f"{COLLECTION}/retry-conversion/{{file}}",
            FILES_WRITE,
            retry_conversion,
            anywhere=True,
            body_bytes=limits.body_bytes,
        ),
    )
