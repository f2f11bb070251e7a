"""The table of operations: what the interface document and the service contract say of each, in one row.

Names and paths are those of the service's own table. `ingestd.client.requests` declares the parameters and the record of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import quote

import msgspec

HttpMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_WORKSPACES = "/v1/workspace"
_WORKSPACE = f"{_WORKSPACES}/{{workspace}}"
_SINKS = f"{_WORKSPACE}/data-sink"
_SINK = f"{_SINKS}/{{sink}}"
_ENTRY = f"{_SINK}/{{key}}"
_HISTORY = f"{_WORKSPACE}/data-sink-history/{{sink}}"
_BLOCKS = f"{_WORKSPACE}/blocks"
_BLOCK = f"{_BLOCKS}/{{block}}"
_WEBHOOKS = "/v1/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{webhook}}"
_DELIVERIES = f"{_WEBHOOK}/deliveries"
_DELIVERY = f"{_DELIVERIES}/{{delivery}}"
_FILES = "/v1/cloud-storage"
_FILE = f"{_FILES}/{{file}}"
_KEYS = "/v1/api-keys"
_KEY = f"{_KEYS}/{{key}}"


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the HTTP API.

    ``row``: its row in the contract's conformance table; empty for an extension. ``client_id``: the interface document
    requires the header ClientId.
    """

    name: str
    row: str
    method: HttpMethod
    path: str
    client_id: bool = False


class Unaddressable(ValueError):
    """A key that can't be a segment of a path: HTTP clients and proxies resolve dots and drop empty segments."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The key {key!r} can't be addressed in a URL: HTTP clients and proxies take it for a relative path. Give the "
            "entry another key; only a service that announces bulk updates can be reached with this one."
        )


_TABLE: list[ApiOperation] = []


def _row(row: str, name: str, method: HttpMethod, path: str, *, client_id: bool = False) -> ApiOperation:
    operation = ApiOperation(name=name, row=row, method=method, path=path, client_id=client_id)
    _TABLE.append(operation)
    return operation


GET_SINK = _row("DS1", "data_sinks.get", "GET", _SINK)
GET_SINKS = _row("DS2", "data_sinks.list_whole", "GET", _SINKS)
LIST_SINKS = _row("DS3", "data_sinks.list", "GET", f"{_SINKS}/list")
GET_ENTRY = _row("DS4", "data_sinks.get_entry", "GET", _ENTRY)
CREATE_SINK = _row("DS5", "data_sinks.create", "POST", _SINKS, client_id=True)
UPDATE_SINK = _row("DS6", "data_sinks.update", "PATCH", _SINK, client_id=True)
DELETE_SINK = _row("DS7", "data_sinks.delete", "DELETE", _SINK, client_id=True)
CREATE_ENTRY = _row("DS8", "data_sinks.create_entry", "POST", _SINK, client_id=True)
UPDATE_ENTRY = _row("DS9", "data_sinks.update_entry", "PATCH", _ENTRY, client_id=True)
DELETE_ENTRY = _row("DS10", "data_sinks.delete_entry", "DELETE", _ENTRY, client_id=True)
MASS = _row("DS11", "data_sinks.mass", "POST", f"{_SINK}/mass")
MASS_BY_KEY = _row("", "data_sinks.mass_by_key", "POST", _ENTRY)
GET_HISTORY = _row("", "data_sink_history.get", "GET", _HISTORY)
UPDATE_HISTORY = _row("", "data_sink_history.update", "PATCH", _HISTORY)
COMPARE_SINK = _row("", "data_sink_history.compare", "GET", f"{_HISTORY}/comparison")
LIST_CHANGES = _row("", "data_sink_history.list_changes", "GET", f"{_HISTORY}/entry/{{key}}")

LIST_BLOCKS = _row("BL1", "blocks.list", "GET", _BLOCKS)
CREATE_BLOCK = _row("BL2", "blocks.create", "POST", _BLOCKS)
GET_BLOCK = _row("BL3", "blocks.get", "GET", _BLOCK)
DELETE_BLOCK = _row("BL4", "blocks.delete", "DELETE", _BLOCK)
UPDATE_BLOCK = _row("BL5", "blocks.update", "PATCH", _BLOCK)

LIST_WORKSPACES = _row("WS1", "workspaces.list", "GET", _WORKSPACES)
CREATE_WORKSPACE = _row("WS2", "workspaces.create", "POST", _WORKSPACES)
GET_WORKSPACE = _row("WS3", "workspaces.get", "GET", _WORKSPACE)
DELETE_WORKSPACE = _row("WS4", "workspaces.delete", "DELETE", _WORKSPACE)
UPDATE_WORKSPACE = _row("WS5", "workspaces.update", "PATCH", _WORKSPACE)

DELETE_FILE = _row("CS1", "cloud_storage.delete", "DELETE", _FILE)
UPDATE_FILE = _row("CS2", "cloud_storage.update", "PATCH", _FILE)
GET_METADATA = _row("CS3", "cloud_storage.get_metadata", "GET", f"{_FILES}/metadata/{{file}}")
REPLACE_METADATA = _row("CS4", "cloud_storage.replace_metadata", "PUT", f"{_FILES}/metadata/{{file}}")
RETRY_CONVERSION = _row("CS5", "cloud_storage.retry_conversion", "POST", f"{_FILES}/retry-conversion/{{file}}")
UPLOAD_LINK = _row("", "cloud_storage.upload_link", "POST", f"{_FILES}/upload-link")
SEND_UPLOAD = _row("", "cloud_storage.receive", "PUT", f"{_FILES}/upload/{{upload}}")
COMPLETE_UPLOAD = _row("", "cloud_storage.upload_complete", "POST", f"{_FILES}/upload-complete/{{file}}")
UPLOAD_FILE = _row("", "cloud_storage.upload", "POST", _FILES)
GET_FILE = _row("", "cloud_storage.get", "GET", _FILE)
LIST_FILES = _row("", "cloud_storage.list", "GET", _FILES)
DOWNLOAD_FILE = _row("", "cloud_storage.download", "GET", f"{_FILES}/download/{{file}}")
LIST_FILE_VERSIONS = _row("", "cloud_storage.list_versions", "GET", f"{_FILES}/version-list/{{file}}")

LIST_WEBHOOKS = _row("WH1", "webhooks.list", "GET", _WEBHOOKS)
CREATE_WEBHOOK = _row("WH2", "webhooks.create", "POST", _WEBHOOKS)
GET_WEBHOOK = _row("WH3", "webhooks.get", "GET", _WEBHOOK)
DELETE_WEBHOOK = _row("WH4", "webhooks.delete", "DELETE", _WEBHOOK)
UPDATE_WEBHOOK = _row("WH5", "webhooks.update", "PATCH", _WEBHOOK)
ROTATE_SECRET = _row("WH6", "webhooks.rotate_secret", "POST", f"{_WEBHOOK}/rotate-secret")
LIST_EVENT_TYPES = _row("", "webhooks.event_types", "GET", f"{_WEBHOOKS}/event-types")
TEST_WEBHOOK = _row("", "webhooks.test", "POST", f"{_WEBHOOK}/test")
LIST_DELIVERIES = _row("", "webhooks.list_deliveries", "GET", _DELIVERIES)
GET_DELIVERY = _row("", "webhooks.get_delivery", "GET", _DELIVERY)
REDELIVER = _row("", "webhooks.redeliver", "POST", f"{_DELIVERY}/redeliver")

LIST_API_KEYS = _row("", "api_keys.list", "GET", _KEYS)
CREATE_API_KEY = _row("", "api_keys.create", "POST", _KEYS)
GET_API_KEY = _row("", "api_keys.get", "GET", _KEY)
REVOKE_API_KEY = _row("", "api_keys.revoke", "DELETE", _KEY)
ROTATE_API_KEY = _row("", "api_keys.rotate", "POST", f"{_KEY}/rotate")

LIST_AUDIT_LOG = _row("", "audit.list", "GET", "/v1/audit-log")

CHECK_LIVE = _row("", "health.live", "GET", "/healthz")
CHECK_READY = _row("", "health.ready", "GET", "/readyz")

OPERATIONS: tuple[ApiOperation, ...] = tuple(_TABLE)
"""Every row, in the order above."""


def fill_path(operation: ApiOperation, names: Mapping[str, str]) -> str:
    """Return the operation's path. Each name is percent-encoded whole, so ``/``, ``%`` and ``?`` stay part of it.

    Raises:
        Unaddressable: a name is empty, ``.`` or ``..``.
    """
    for name in names.values():
        if name in {"", ".", ".."}:
            raise Unaddressable(name)
    return operation.path.format_map({field: quote(name, safe="") for field, name in names.items()})
