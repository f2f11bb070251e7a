"""Finds workspaces and sinks by a name that a person wrote, and builds the requests for their lists. Performs no I/O.

Labels and visible ids are compared in NFC without white space around them, as the service stores them (contract G7, S1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from ingestd.client.operations import ServiceMethods
from ingestd.client.readers import reader
from ingestd.client.records import SinkSummary, WorkspaceSummary
from ingestd.client.request import Read, Request
from ingestd.core.normal_form import compared_name, nfc

T = TypeVar("T")

Naming: TypeAlias = Literal["label", "id", "visible_id"]

_WORKSPACES: Read[tuple[WorkspaceSummary, ...]] = reader(tuple[WorkspaceSummary, ...])
_SINKS: Read[tuple[SinkSummary, ...]] = reader(tuple[SinkSummary, ...])
_MAX_LIST_BYTES = 64 * 1024 * 1024
"""The maximum size of a list of workspaces or sinks. Some hundred thousand records fit."""


def workspaces_request() -> Request[tuple[WorkspaceSummary, ...]]:
    """Return the request for the workspaces that the key may read."""
    return _with_names(ServiceMethods.list_workspaces.build(), _WORKSPACES)


def sinks_request(workspace: str) -> Request[tuple[SinkSummary, ...]]:
    """Return the request for every sink of a workspace, without entries."""
    return _with_names(ServiceMethods.list_sinks.build(workspace), _SINKS)


def _with_names(request: Request[Any], read: Read[T]) -> Request[T]:
    """Return the request with the reader ``read``, which needs only the names. A service may omit all other members."""
    return replace(request, read=read, max_response_bytes=_MAX_LIST_BYTES)


def workspaces_named(name: str, listed: Iterable[WorkspaceSummary]) -> list[WorkspaceSummary]:
    """Return the workspaces with this label or id."""
    wanted = compared_name(name)
    return [one for one in listed if wanted in {compared_name(one.label), one.id}]


def sinks_named(name: str, listed: Iterable[SinkSummary], *by: Naming) -> list[SinkSummary]:
    """Return the sinks with this name as a label or id, as selected by ``by``. The case of ids is ignored (contract S5)."""
    wanted = compared_name(name)

    def is_named(sink: SinkSummary, way: Naming) -> bool:
        if way == "label":
            return compared_name(sink.label) == wanted
        return nfc((sink.id if way == "id" else sink.visible_id) or "").lower() == wanted.lower()

    return [sink for sink in listed if any(is_named(sink, way) for way in by)]
