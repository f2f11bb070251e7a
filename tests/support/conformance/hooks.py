"""Hooks of schemathesis for rules of valid requests that a schema cannot express. Schemathesis loads this file by its path."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from itertools import count
from typing import Any, TypeAlias

import schemathesis
from schemathesis.generation.meta import TestPhase

Case: TypeAlias = schemathesis.Case[Any]

_OWN_KEY = os.environ["WORKSPACED_TEST_KEY"].split("_")[1]
_WORLD: dict[str, str] = json.loads(os.environ["WORKSPACED_TEST_WORLD"])
"""Ids of existing resources by path parameter. For the parameter `id`, they are by the beginning of the path."""

_NUMBERS = count(1)
_WRITER = re.compile(r"[\w.-]+;\d+;\d+", re.ASCII)
_SOUND = re.compile(r'"[ !#-~]{1,255}"|[!#-~][ -~]{0,254}')


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    del context, kwargs
    path = dict(case.path_parameters or {})
    if case.path.startswith("/v1/api-keys/") and path.get("id") == _OWN_KEY and case.method != "GET":
        case.path_parameters = {"id": "00000000"}  # a run that revokes its own key would receive only 401 afterwards
    _repeat_only_what_is_equal(case, path)
    if case.meta is None or not case.meta.generation.mode.is_positive:
        _without_partial(case)
        return
    # A cursor is valid only if a Link header of the same list contained it, which no schema can express.
    case.query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
    if case.meta.phase.name is not TestPhase.STATEFUL and case.method != "DELETE" and next(_NUMBERS) % 3:
        _reach(case)
    _agree(case, dict(case.path_parameters or {}))


def _without_partial(case: Case) -> None:
    """Remove partial=true from mass updates: with it, the service accepts a body with invalid items and reports each item."""
    if case.path.endswith("/mass") and str((case.query or {}).get("partial", "")).lower() == "true":
        case.query = {name: value for name, value in case.query.items() if name != "partial"}


def _reach(case: Case) -> None:
    """Use existing ids in the path. Most generated ids do not exist, so only 404 would be tested."""
    plain = next((known for begin, known in _WORLD.items() if begin[0] == "/" and case.path.startswith(begin)), None)
    known = {**_WORLD, **({"id": plain} if plain else {})}
    case.path_parameters = {name: known.get(name, value) for name, value in (case.path_parameters or {}).items()}
    for place in (case.query, case.body):
        if isinstance(place, dict) and "workspaceId" in place and "cloud-storage" in case.path:
            place["workspaceId"] = _WORLD["workspaceId"]


def _agree(case: Case, path: dict[str, Any]) -> None:
    """Make dependent parts of a request match: body and path, versions, and keys of entries."""
    headers = case.headers
    if headers.get("If-Match") and next(_NUMBERS) % 4:
        headers["If-Match"] = "*"  # a generated version never matches, so the response would always be 412
    elif "If-Match" in headers:
        del headers["If-Match"]
    # In the phase "coverage", schemathesis 4.32 bases its positive cases on "0", which does not match the pattern.
    if "X-Writer" in headers and not _WRITER.fullmatch(headers["X-Writer"]):
        headers["X-Writer"] = "daemon-7;1;42"
    if case.path == "/v1/cloud-storage" and case.method == "POST":
        case.query = {"fileName": "x.csv", **(case.query or {})}  # only a new version of a file needs no name
    body = case.body
    if isinstance(body, dict) and case.method == "POST":
        if case.path.endswith("/blocks"):
            body["workspace"] = path["workspaceId"]
        if case.path == "/v1/webhooks":
            body["id"] = str(uuid.UUID(int=next(_NUMBERS) << 64 | 1))
            body["url"] = f"https://receiver.invalid/{next(_NUMBERS)}"  # does not resolve
        for number, entry in enumerate(_entries(body)):
            entry["key"] = f"{entry['key'][:200]}{number}"


def _entries(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a new sink, or an empty list."""
    found = body.get("entries")
    return found if isinstance(found, list) and "label" in body else []


def _repeat_only_what_is_equal(case: Case, path: dict[str, Any]) -> None:
    """Derive the Idempotency-Key from the content. Otherwise nearly each POST would be rejected because of a reused key."""
    if _SOUND.fullmatch(str(case.headers.get("Idempotency-Key", ""))):
        content = json.dumps([case.path, path, case.query, case.body], default=str)
        case.headers["Idempotency-Key"] = hashlib.sha256(content.encode()).hexdigest()
