"""The table of the data sinks' operations: the document's eleven rows, and row 11 under an entry's key (contract M1)."""

from __future__ import annotations

from ingestd.wire.bulk import HEADER, BulkLimits
from workspaced.http import content_coding
from workspaced.http.operations import Operation, PathHeaders
from workspaced.resources.data_sinks import entry_routes, mass_routes, sink_routes
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_READ, DATA_SINKS_WRITE
from workspaced.settings.model import Limits

_ALL = "/v1/workspace/{workspace}/data-sink"
_ONE = f"{_ALL}/{{sink}}"
_ENTRY = f"{_ONE}/{{key}}"


def operations(limits: Limits) -> tuple[Operation, ...]:
    """In the document's order."""
    small, large = limits.body_bytes, limits.bulk_body_bytes
    return (
        Operation(name="data_sinks.get", method="GET", path=_ONE, scope=DATA_SINKS_READ, read=sink_routes.get_sink),
        Operation(
            name="data_sinks.list_whole",
            method="GET",
            path=_ALL,
            scope=DATA_SINKS_READ,
            read=sink_routes.list_whole_sinks,
            document_form=True,
        ),
        Operation(
            name="data_sinks.list",
            method="GET",
            path=f"{_ALL}/list",
            scope=DATA_SINKS_READ,
            read=sink_routes.list_sinks,
            document_form=True,
        ),
        Operation(
            name="data_sinks.get_entry", method="GET", path=_ENTRY, scope=DATA_SINKS_READ, read=entry_routes.get_entry
        ),
        Operation(
            name="data_sinks.create",
            method="POST",
            path=_ALL,
            scope=DATA_SINKS_WRITE,
            prepare=sink_routes.create_sink,
            client_id=True,
            body_bytes=large,
        ),
        Operation(
            name="data_sinks.update",
            method="PATCH",
            path=_ONE,
            scope=DATA_SINKS_WRITE,
            prepare=sink_routes.update_sink,
            client_id=True,
            document_form=True,
            body_bytes=small,
        ),
        Operation(
            name="data_sinks.delete",
            method="DELETE",
            path=_ONE,
            scope=DATA_SINKS_WRITE,
            prepare=sink_routes.delete_sink,
            client_id=True,
        ),
        Operation(
            name="data_sinks.create_entry",
            method="POST",
            path=_ONE,
            scope=DATA_SINKS_PUSH,
            prepare=entry_routes.create_entry,
            client_id=True,
            body_bytes=small,
        ),
        Operation(
            name="data_sinks.update_entry",
            method="PATCH",
            path=_ENTRY,
            scope=DATA_SINKS_PUSH,
            prepare=entry_routes.update_entry,
            client_id=True,
            body_bytes=small,
        ),
        Operation(
            name="data_sinks.delete_entry",
            method="DELETE",
            path=_ENTRY,
            scope=DATA_SINKS_WRITE,
            prepare=entry_routes.delete_entry,
            client_id=True,
        ),
        Operation(
            name="data_sinks.mass",
            method="POST",
            path=f"{_ONE}/mass",
            scope=DATA_SINKS_PUSH,
            prepare=mass_routes.update_mass,
            document_form=True,
            body_bytes=large,
        ),
        Operation(
            name="data_sinks.mass_by_key",
            method="POST",
            path=_ENTRY,
            scope=DATA_SINKS_PUSH,
            prepare=mass_routes.update_mass,
            document_form=True,
            body_bytes=large,
        ),
    )


def path_headers(limits: Limits) -> PathHeaders:
    """Announce the bulk form and compressed bodies on every response below the sinks (contract M9)."""
    bulk = BulkLimits(max_items=limits.bulk_items, max_bytes=limits.bulk_body_bytes)
    return PathHeaders(path=_ALL, headers=((HEADER, str(bulk)), (content_coding.HEADER, content_coding.SUPPORTED)))
