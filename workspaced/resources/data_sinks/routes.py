"""The table of the operations of data sinks (contract M1)."""

from __future__ import annotations

from ingestd.wire import bulk, writer
from workspaced.http import content_coding
from workspaced.http.operations import Operation, PathHeaders
from workspaced.resources.data_sinks import entry_routes, mass_routes, sink_routes
from workspaced.resources.operation_rows import read_operation, write_operation
from workspaced.security.permissions import DATA_SINKS_PUSH as PUSH
from workspaced.security.permissions import DATA_SINKS_READ as READ
from workspaced.security.permissions import DATA_SINKS_WRITE as WRITE
from workspaced.settings.model import Limits

_ALL = "/v1/workspace/{workspace}/data-sink"
_ONE = f"{_ALL}/{{sink}}"
_ENTRY = f"{_ONE}/{{key}}"


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the rows in the order of the interface document."""
    small, large = limits.body_bytes, limits.bulk_body_bytes
    return (
        read_operation("data_sinks.get", _ONE, READ, sink_routes.get_sink),
        read_operation("data_sinks.list_whole", _ALL, READ, sink_routes.list_whole_sinks, document_form=True),
        read_operation("data_sinks.list", f"{_ALL}/list", READ, sink_routes.list_sinks, document_form=True),
        read_operation("data_sinks.get_entry", _ENTRY, READ, entry_routes.get_entry),
        write_operation(
            "data_sinks.create", "POST", _ALL, WRITE, sink_routes.create_sink, client_id=True, body_bytes=large
        ),
        write_operation(
            "data_sinks.update",
            "PATCH",
            _ONE,
            WRITE,
            sink_routes.update_sink,
            client_id=True,
            document_form=True,
            body_bytes=small,
        ),
        write_operation("data_sinks.delete", "DELETE", _ONE, WRITE, sink_routes.delete_sink, client_id=True),
        write_operation(
            "data_sinks.create_entry", "POST", _ONE, PUSH, entry_routes.create_entry, client_id=True, body_bytes=small
        ),
        write_operation(
            "data_sinks.update_entry",
            "PATCH",
            _ENTRY,
            PUSH,
            entry_routes.update_entry,
            client_id=True,
            body_bytes=small,
        ),
        write_operation("data_sinks.delete_entry", "DELETE", _ENTRY, WRITE, entry_routes.delete_entry, client_id=True),
        write_operation(
            "data_sinks.mass",
            "POST",
            f"{_ONE}/mass",
            PUSH,
            mass_routes.update_mass,
            document_form=True,
            body_bytes=large,
        ),
        write_operation(
            "data_sinks.mass_by_key",
            "POST",
            _ENTRY,
            PUSH,
            mass_routes.update_mass,
            document_form=True,
            body_bytes=large,
        ),
    )


def path_headers(limits: Limits) -> PathHeaders:
    """Return the headers that announce bulk calls, the writer fence and compressed bodies (contract M9, M11)."""
    most = bulk.BulkLimits(max_items=limits.bulk_items, max_bytes=limits.bulk_body_bytes)
    return PathHeaders(
        path=_ALL,
        headers=(
            (bulk.HEADER, str(most)),
            (writer.FENCE_HEADER, writer.FENCE),
            (content_coding.HEADER, content_coding.SUPPORTED),
        ),
    )
