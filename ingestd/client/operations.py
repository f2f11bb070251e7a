"""The table of operations: what the interface document says of each, in one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote

Answers: TypeAlias = Literal["sink", "sinks", "entry", "bulk", "workspace", "workspaces", "nothing"]

_WORKSPACES = "/v1/workspace"
_WORKSPACE = "/v1/workspace/{workspace}"
_SINKS = "/v1/workspace/{workspace}/data-sink"
_SINK = "/v1/workspace/{workspace}/data-sink/{sink}"
_ENTRY = "/v1/workspace/{workspace}/data-sink/{sink}/{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row: ``client_id`` where the document demands the header ClientId, ``row`` the document's own number."""

    name: str
    row: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    answers: Answers
    client_id: bool = False


class Unaddressable(ValueError):
    """A key that can't stand in a path: every HTTP client and proxy resolves dots and drops empty segments."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The key {key!r} can't be addressed in a URL: HTTP clients and proxies take it for a relative path. Give the "
            "entry another key; only a service that announces bulk updates can be reached with this one."
        )


GET_SINK = Operation(name="get_sink", row="DS1", method="GET", path=_SINK, answers="sink")
GET_SINKS = Operation(name="get_sinks", row="DS2", method="GET", path=_SINKS, answers="sinks")
LIST_SINKS = Operation(name="list_sinks", row="DS3", method="GET", path=f"{_SINKS}/list", answers="sinks")
GET_ENTRY = Operation(name="get_entry", row="DS4", method="GET", path=_ENTRY, answers="entry")
CREATE_SINK = Operation(name="create_sink", row="DS5", method="POST", path=_SINKS, answers="sink", client_id=True)
PATCH_SINK = Operation(name="patch_sink", row="DS6", method="PATCH", path=_SINK, answers="nothing", client_id=True)
DELETE_SINK = Operation(name="delete_sink", row="DS7", method="DELETE", path=_SINK, answers="nothing", client_id=True)
CREATE_ENTRY = Operation(name="create_entry", row="DS8", method="POST", path=_SINK, answers="entry", client_id=True)
PATCH_ENTRY = Operation(name="patch_entry", row="DS9", method="PATCH", path=_ENTRY, answers="entry", client_id=True)
DELETE_ENTRY = Operation(
    name="delete_entry", row="DS10", method="DELETE", path=_ENTRY, answers="nothing", client_id=True
)
MASS_UPDATE_ENTRY = Operation(
    name="mass_update_entry", row="DS11", method="POST", path=f"{_SINK}/mass", answers="entry"
)
MASS_UPDATE = Operation(name="mass_update", row="DS11", method="POST", path=f"{_SINK}/mass", answers="bulk")
LIST_WORKSPACES = Operation(name="list_workspaces", row="WS1", method="GET", path=_WORKSPACES, answers="workspaces")
CREATE_WORKSPACE = Operation(name="create_workspace", row="WS2", method="POST", path=_WORKSPACES, answers="workspace")
GET_WORKSPACE = Operation(name="get_workspace", row="WS3", method="GET", path=_WORKSPACE, answers="workspace")

OPERATIONS: tuple[Operation, ...] = (
    GET_SINK,
    GET_SINKS,
    LIST_SINKS,
    GET_ENTRY,
    CREATE_SINK,
    PATCH_SINK,
    DELETE_SINK,
    CREATE_ENTRY,
    PATCH_ENTRY,
    DELETE_ENTRY,
    MASS_UPDATE_ENTRY,
    MASS_UPDATE,
    LIST_WORKSPACES,
    CREATE_WORKSPACE,
    GET_WORKSPACE,
)


def fill(operation: Operation, names: Mapping[str, str]) -> str:
    """The operation's path with each name percent-encoded whole, so that ``/``, ``%`` and ``?`` stay part of the name.

    Raises:
        Unaddressable: a name is empty, ``.`` or ``..``.
    """
    for name in names.values():
        if name in {"", ".", ".."}:
            raise Unaddressable(name)
    return operation.path.format_map({field: quote(name, safe="") for field, name in names.items()})
