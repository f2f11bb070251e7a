"""Requests to every operation of the service, generated from its table of operations and its descriptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.sample_workspace import SampleWorkspace
from workspaced.app import create_app
from workspaced.http.operations import Operation
from workspaced.settings.model import WorkspacedSettings

_SETTINGS = WorkspacedSettings(data=Path("unused"))
OPERATIONS: tuple[Operation, ...] = create_app(_SETTINGS).operations
# The workspace of the examples, and the names in paths and queries of the members of a `SampleWorkspace`.
_EXAMPLE_WORKSPACE = "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10"
_QUERIES = {"from": "2020-01-01T00:00:00Z", "fileName": "x.csv", "expires": "9", "signature": "x"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A valid request."""

    operation: Operation
    path: str
    query: dict[str, str]
    body: bytes | None


def request_to(
    operation: Operation, sample: SampleWorkspace, *, api_key: str = "00000000", upload: str = ""
) -> Request:
    """Return a request to that operation, for the resources of the sample; ``api_key`` is the id of a key."""
    names = {
        "workspace": sample.workspace,
        "sink": sample.sink,
        "block": sample.block,
        "webhook": sample.webhook,
        "delivery": sample.delivery,
        "file": sample.file,
        "upload": upload or sample.file,
    }
    names["key"] = api_key if operation.path.startswith("/v1/api-keys") else sample.key
    query = {**_QUERIES, "workspaceId": sample.workspace}
    wanted = {parameter.name for parameter in operation.query if parameter.required or parameter.name == "workspaceId"}
    body: Any = operation.body.example if operation.body else None
    return Request(
        operation=operation,
        path=operation.path.format(**names),
        query={name: query[name] for name in sorted(wanted)},
        body=None if body is None else json.dumps(body).replace(_EXAMPLE_WORKSPACE, sample.workspace).encode(),
    )
