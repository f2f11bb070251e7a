"""What a schema can't say of a sound request, said to schemathesis. It loads this file by its path."""

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
"""Ids of one of each, by the name of the path's parameter or, for the plain `id`, by the path's beginning."""

_NUMBERS = count(1)
_SOUND = re.compile(r'"[ !#-~]{1,255}"|[!#-~][ -~]{0,254}')


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    del context, kwargs
    path = dict(case.path_parameters or {})
    if case.path.startswith("/v1/api-keys/") and path.get("id") == _OWN_KEY and case.method != "GET":
        case.path_parameters = {"id": "00000000"}  # a run that revokes its own key sees 401 and nothing else
    _repeat_only_what_is_equal(case, path)
    if case.meta is None or not case.meta.generation.mode.is_positive:
        _without_partial(case)
        return
    # Only a Link of the same list has a cursor that fits; one that is made up is refused, which no schema can say.
    case.query = {name: value for name, value in (case.query or {}).items() if name != "cursor"}
    if case.meta.phase.name is not TestPhase.STATEFUL and case.method != "DELETE" and next(_NUMBERS) % 3:
        _reach(case)
    _agree(case, dict(case.path_parameters or {}))


def _without_partial(case: Case) -> None:
    """A mass update with partial=true accepts a body with wrong items, and reports each."""
    if case.path.endswith("/mass") and str((case.query or {}).get("partial", "")).lower() == "true":
        case.query = {name: value for name, value in case.query.items() if name != "partial"}


def _reach(case: Case) -> None:
    """Name what is there: most of what is made up is not, and then nothing but that is looked at."""
    plain = next((known for begin, known in _WORLD.items() if begin[0] == "/" and case.path.startswith(begin)), None)
    known = {**_WORLD, **({"id": plain} if plain else {})}
    case.path_parameters = {name: known.get(name, value) for name, value in (case.path_parameters or {}).items()}
    for place in (case.query, case.body):
        if isinstance(place, dict) and "workspaceId" in place and "cloud-storage" in case.path:
            place["workspaceId"] = _WORLD["workspaceId"]


def _agree(case: Case, path: dict[str, Any]) -> None:
    """Make what belongs together fit: body and path, versions, the keys of entries."""
    headers = case.headers
    if headers.get("If-Match") and next(_NUMBERS) % 4:
        headers["If-Match"] = "*"  # another version than the stored one is 412 each time
    elif "If-Match" in headers:
        del headers["If-Match"]
    body = case.body
    if isinstance(body, dict) and case.method == "POST":
        if case.path.endswith("/blocks"):
            body["workspace"] = path["workspaceId"]
        if case.path == "/v1/webhooks":
            body["id"] = str(uuid.UUID(int=next(_NUMBERS) << 64 | 1))
            body["url"] = f"https://receiver.invalid/{next(_NUMBERS)}"  # resolves nowhere
        for number, entry in enumerate(_entries(body)):
            entry["key"] = f"{entry['key'][:200]}{number}"


def _entries(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a new sink: no two of them may have one key."""
    found = body.get("entries")
    return found if isinstance(found, list) and "label" in body else []


def _repeat_only_what_is_equal(case: Case, path: dict[str, Any]) -> None:
    """A valid Idempotency-Key is derived from its content; else nearly every POST would be refused as another one's."""
    if _SOUND.fullmatch(str(case.headers.get("Idempotency-Key", ""))):
        content = json.dumps([case.path, path, case.query, case.body], default=str)
        case.headers["Idempotency-Key"] = hashlib.sha256(content.encode()).hexdigest()
