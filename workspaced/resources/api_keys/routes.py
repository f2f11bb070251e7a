"""The operations of API keys, for administrators of the service (contract A2)."""

from __future__ import annotations

import json
from typing import Final

from workspaced.core.json_body import encode
from workspaced.core.problems import ConflictProblem, NotFoundProblem, UnprocessableProblem
from workspaced.http.description import RequestBody, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, json_response
from workspaced.resources.api_keys.records import ApiKeyRecord, KeyT, ShownApiKeyRecord, key_record
from workspaced.resources.api_keys.rules import KeyRotation, NewApiKey, with_defaults
from workspaced.resources.operation_rows import delete, get, post
from workspaced.resources.read_responses import list_response, read_list_page, select_page
from workspaced.security import key_store
from workspaced.security.key_format import key_id_of
from workspaced.security.key_store import StoredKey
from workspaced.security.permissions import ADMIN
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

SORTABLE: Final = {"createdAt": "created_at", "name": "name", "id": "id"}
_ALL = "/v1/api-keys"
_ONE = f"{_ALL}/{{key}}"
_NO_STORE = (("Cache-Control", "no-store"),)


class _WithoutKey:
    """Removes the key from stored responses of repeated requests: a key is shown once (contract A1, G18)."""

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """Return the response without the key."""
        del purpose
        record = json.loads(text)
        record.pop("key", None)
        return encode(record)

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """Return the stored response."""
        del purpose
        return stored


_WITHOUT_KEY = _WithoutKey()


async def list_keys(call: Call) -> Response:
    """List API keys.

    All keys, also revoked keys, the oldest first. The records do not contain the keys themselves.
    200: The keys.
    """
    page = read_list_page(call, SORTABLE)

    def find(reader: ReadTransaction) -> tuple[int, list[ApiKeyRecord]]:
        found = key_store.list_keys(reader)
        return len(found), [_record(reader, ApiKeyRecord, key) for key in select_page(page, found, SORTABLE)]

    return await list_response(call, page, find)


async def get_key(call: Call) -> Response:
    """Get an API key.

    One key, revoked or not. The record does not contain the key itself.
    200: The key.
    """
    return json_response(
        await call.store.read(lambda reader: _record(reader, ApiKeyRecord, _get_by_path(reader, call)))
    )


def create_key(tx: Transaction, call: Call, given: NewApiKey) -> Response:
    """Create an API key.

    Creates a key. Only this response shows the key.
    201: The key.
    422: `workspace_not_found`: there is no such workspace.
    """
    new = with_defaults(given, call.settings.limits, now=call.now)
    if new.workspace_id and not key_store.workspace_is_there(tx, new.workspace_id):
        raise UnprocessableProblem("workspace_not_found", "workspaceId must be the id of a workspace.")
    key = key_store.create_key(
        tx,
        name=new.name,
        role=new.role,
        now=call.now,
        expires_at=new.expires_at,
        workspace_id=new.workspace_id,
        scopes=new.scopes,
        guest=new.guest,
    )
    key_id = key_id_of(key) or ""
    call.note(tx, "api_key.created", key_id, label=new.name, workspace_id=new.workspace_id)
    headers = (("Location", f"{_ALL}/{key_id}"), *_NO_STORE)
    return json_response(_record(tx, ShownApiKeyRecord, _get(tx, key_id), key=key), status=201, headers=headers)


def rotate_key(tx: Transaction, call: Call, rotation: KeyRotation) -> Response:
    """Rotate an API key (contract A4).

    Creates a new secret under the same id.
    200: The key.
    409: `key_revoked`: it is revoked; create another key.
    """
    found = _get_by_path(tx, call)
    if found.revoked_at is not None:
        raise ConflictProblem("key_revoked", "A revoked key can't be rotated: create another key.")
    key = key_store.rotate_key(tx, key_id=found.id, now=call.now, overlap_ms=rotation.seconds * 1_000)
    call.note(tx, "api_key.rotated", found.id, label=found.name)
    return json_response(_record(tx, ShownApiKeyRecord, _get(tx, found.id), key=key), headers=_NO_STORE)


def revoke_key(tx: Transaction, call: Call) -> Response:
    """Revoke an API key (contract G25).

    The key and all its secrets become invalid.
    200: The key after it was revoked.
    404: `key_revoked`: it was revoked before.
    """
    found = _get_by_path(tx, call)
    if found.revoked_at is not None:
        raise NotFoundProblem("key_revoked", "This API key is revoked already.")
    key_store.revoke_key(tx, key_id=found.id, now=call.now)
    call.note(tx, "api_key.revoked", found.id, label=found.name)
    return json_response(_record(tx, ApiKeyRecord, _get(tx, found.id)))


def _get_by_path(reader: ReadTransaction, call: Call) -> StoredKey:
    return _get(reader, call.names["key"])


def _get(reader: ReadTransaction, key_id: str) -> StoredKey:
    key = key_store.find_key(reader, key_id)
    if key is None:
        raise NotFoundProblem("key_not_found", "There is no API key with this id.")
    return key


def _record(reader: ReadTransaction, record_type: type[KeyT], stored: StoredKey, **others: str) -> KeyT:
    return key_record(record_type, stored, key_store.all_grants(reader, stored.principal), **others)


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations on API keys."""
    size = limits.body_bytes
    key, shown = Success(ApiKeyRecord), Success(ShownApiKeyRecord, ("Cache",))
    following = links(
        {"id": "$response.body#/id"}, get="api_keys.get", rotate="api_keys.rotate", revoke="api_keys.revoke"
    )
    return (
        get("api_keys.list", _ALL, ADMIN, list_keys).described(
            success=listed(ApiKeyRecord), query=paging(limits, SORTABLE)
        ),
        post("api_keys.create", _ALL, ADMIN, create_key, body_bytes=size, secret_box=_WITHOUT_KEY).described(
            body=RequestBody(NewApiKey, {"name": "svc:ingest", "role": "pusher"}),
            success=Success(ShownApiKeyRecord, ("Location", "Cache"), status=201, links=following),
        ),
        get("api_keys.get", _ONE, ADMIN, get_key).described(success=key),
        delete("api_keys.revoke", _ONE, ADMIN, revoke_key).described(success=key),
        post(
            "api_keys.rotate", f"{_ONE}/rotate", ADMIN, rotate_key, body_bytes=size, secret_box=_WITHOUT_KEY
        ).described(body=RequestBody(KeyRotation, {"gracePeriodSeconds": 3600}, required=False), success=shown),
    )
