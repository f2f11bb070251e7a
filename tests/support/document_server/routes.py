"""The routes of the document: method and path to a method of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.document_server.store import Refusal, Store, invalid, not_found

_METHODS = {"GET", "POST", "PATCH", "DELETE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request below ``/v1/workspace/{workspace}/data-sink``. ``rest``: the decoded path segments below this path."""

    workspace: str
    rest: tuple[str, ...]
    headers: Mapping[str, str]
    body: object

    @property
    def members(self) -> Mapping[str, Any]:
        if not isinstance(self.body, dict):
            raise invalid()
        return self.body


def respond(store: Store, method: str, target: str, headers: Mapping[str, str], body: object) -> tuple[int, Any]:
    """Return status and body (None: no content) of a response. ``headers`` has lower-case names.

    Raises:
        Refusal: The request is rejected.
    """
    segments = [unquote(segment, errors="strict") for segment in urlsplit(target).path.split("/")]
    if segments[:3] != ["", "v1", "workspace"] or "" in segments[3:]:
        raise not_found()
    if method not in _METHODS:
        raise Refusal(405, "Method not allowed")
    match segments[3:]:
        case [] if method == "GET":
            return 200, list(store.workspaces.values())
        case [] if method == "POST" and isinstance(body, dict):
            return 201, store.create_workspace(body)
        case [workspace] if method == "GET":
            return 200, store.workspace(workspace)
        case [workspace, "data-sink", *rest]:
            call = Call(workspace=workspace, rest=tuple(rest), headers=headers, body=body)
            return _read(store, call) if method == "GET" else _write(store, method, call)
    raise not_found()


def _read(store: Store, call: Call) -> tuple[int, Any]:
    match call.rest:
        case ("list",):
            return 200, store.list_sinks(call.workspace)
        case ():
            return 200, [store.whole_sink(call.workspace, sink["id"]) for sink in store.list_sinks(call.workspace)]
        case (sink,):
            return 200, store.whole_sink(call.workspace, sink)
        case (sink, key):
            return 200, store.entry(call.workspace, sink, key)
    raise not_found()


def _write(store: Store, method: str, call: Call) -> tuple[int, Any]:
    if method == "POST" and call.rest[1:] == ("mass",):
        if call.headers.get("content-type") != "application/json":
            raise invalid()
        return 200, store.mass(call.workspace, call.rest[0], call.members)
    if not call.headers.get("clientid"):
        raise Refusal(400, "The header ClientId is required")
    rule = _WRITES.get((method, len(call.rest)))
    if rule is None:
        raise not_found()
    return rule(store, call)


def _made(record: dict[str, Any]) -> tuple[int, Any]:
    return 201, record


def _done(record: object = None) -> tuple[int, Any]:
    return 200, record


_WRITES: Mapping[tuple[str, int], Callable[[Store, Call], tuple[int, Any]]] = {
    ("POST", 0): lambda store, call: _made(store.create_sink(call.workspace, call.members)),
    ("PATCH", 1): lambda store, call: _done(store.patch_sink(call.workspace, call.rest[0], call.members)),
    ("DELETE", 1): lambda store, call: _done(store.delete_sink(call.workspace, call.rest[0])),
    ("POST", 1): lambda store, call: _made(store.create_entry(call.workspace, call.rest[0], call.members)),
    ("PATCH", 2): lambda store, call: _done(
        store.patch_entry(call.workspace, call.rest[0], call.rest[1], call.members)
    ),
    ("DELETE", 2): lambda store, call: _done(store.delete_entry(call.workspace, call.rest[0], call.rest[1])),
}
