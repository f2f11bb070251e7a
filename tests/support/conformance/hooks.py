"""Hooks of schemathesis for rules of valid requests that a schema cannot express; loaded by path."""

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
"""Ids of existing resources, by path parameter or, for the plain `id`, by the beginning of the path."""

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
    # A cursor is valid only if it is from a Link header of the same list, which no schema can express.
    case.query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
    if case.meta.phase.name is not TestPhase.STATEFUL and case.method != "DELETE" and next(_NUMBERS) % 3:
        _reach(case)
    _agree(case, dict(case.path_parameters or {}))


def _without_partial(case: Case) -> None:
    """A mass update with partial=true accepts a body with invalid items, and reports each."""
    if case.path.endswith("/mass") and str((case.query or {}).get("partial", "")).lower() == "true":
        case.query = {name: value for name, value in case.query.items() if name != "partial"}


def _reach(case: Case) -> None:
    """Use existing ids in the path: most generated ids do not exist, so only 404 would be tested."""
    plain = next((known for begin, known in _WORLD.items() if begin[0] == "/" and case.path.startswith(begin)), None)
    known = {**_WORLD, **({"id": plain} if plain else {})}
    case.path_parameters = {name: known.get(name, value) for name, value in (case.path_parameters or {}).items()}
    for place in (case.query, case.body):
        if isinstance(place, dict) and "workspaceId" in place and "cloud-storage" in case.path:
            place["workspaceId"] = _WORLD["workspaceId"]


def _agree(case: Case, path: dict[str, Any]) -> None:
    """Make dependent parts match: body and path, versions, the keys of entries."""
    headers = case.headers
    if headers.get("If-Match") and next(_NUMBERS) % 4:
        headers["If-Match"] = "*"  # a version other than the stored one is always 412
    elif "If-Match" in headers:
        del headers["If-Match"]
    # The base of the positive cases of phase coverage (schemathesis 4.32) has "0" here, against the pattern.
    if "X-Writer" in headers and not _WRITER.fullmatch(headers["X-Writer"]):
        headers["X-Writer"] = "daemon-7;1;42"
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
    """Give the entries of a new sink different keys."""
    found = body.get("entries")
    return found if isinstance(found, list) and "label" in body else []


def _repeat_only_what_is_equal(case: Case, path: dict[str, Any]) -> None:
    """Derive the Idempotency-Key from the content; else nearly every POST would be rejected for a reused key."""
    if _SOUND.fullmatch(str(case.headers.get("Idempotency-Key", ""))):
        content = json.dumps([case.path, path, case.query, case.body], default=str)
        case.headers["Idempotency-Key"] = hashlib.sha256(content.encode()).hexdigest()
