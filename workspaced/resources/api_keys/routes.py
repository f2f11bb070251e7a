"""API keys over HTTP, for who administers the whole service (contract A2): list, get, create, rotate, revoke."""

from __future__ import annotations

import json
from typing import Any, Final

from workspaced.core.json_body import encode
from workspaced.core.members import read_body
from workspaced.core.problems import ConflictProblem, NotFoundProblem, UnprocessableProblem
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import read_page
from workspaced.http.responses import Response, json_response
from workspaced.resources.api_keys.records import ApiKeyRecord, ShownApiKeyRecord, key_members
from workspaced.resources.api_keys.rules import KeyRotation, read_new_key
from workspaced.resources.operation_rows import read_operation, write_operation
from workspaced.security import key_store
from workspaced.security.audit_log import AuditAction
from workspaced.security.key_format import key_id_of
from workspaced.security.key_store import StoredKey
from workspaced.security.permissions import ADMIN
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

SORTABLE: Final = frozenset({"createdAt", "name", "id"})
_COLLECTION = "/v1/api-keys"
_ONE = f"{_COLLECTION}/{{key}}"
_SECRET = (("Cache-Control", "no-store"),)


class _Withheld:
    """What is kept of an answer for a repetition has no key in it, which is shown once and stored nowhere (contract A1, G18)."""

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """The answer without the key."""
        del purpose
        record = json.loads(text)
        record.pop("key", None)
        return encode(record)

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """What was kept."""
        del purpose
        return stored


_WITHHELD = _Withheld()


async def list_keys(call: Call) -> Response:
    """Every key, oldest first; the revoked ones too."""
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=SORTABLE)

    def question(reader: ReadTransaction) -> tuple[int, list[ApiKeyRecord]]:
        found = key_store.list_keys(reader)
        if page.sorted_by in {"name", "id"}:
            found.sort(key=lambda key: (getattr(key, page.sorted_by), key.id))
        if page.descending:
            found.reverse()
        shown = page.of(found)
        return len(found), [_record(reader, key) for key in shown]

    total, records = await call.store.read(question)
    return json_response(records, headers=page.headers(total=total, path=call.path, query=call.query))


async def get_key(call: Call) -> Response:
    """One key, revoked or not."""
    return json_response(await call.store.read(lambda reader: _record(reader, _found(reader, call))))


def create_key(call: Call) -> Work:
    """The one answer that shows the key."""
    new, ignored = read_new_key(call.json(), call.settings.limits, now=call.now)

    def act(tx: Transaction) -> Response:
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
        call.note(tx, AuditAction(action="api_key.created", resource_id=key_id, workspace_id=new.workspace_id))
        headers = (("Location", f"{_COLLECTION}/{key_id}"), *_SECRET)
        return json_response(
            ShownApiKeyRecord(**_members(tx, _stored(tx, key_id)), key=key), status=201, headers=headers
        )

    return Work(act=act, ignored=ignored, secret_box=_WITHHELD)


def rotate_key(call: Call) -> Work:
    """A new secret under the same id; the old ones hold for a while (contract A4)."""
    rotation, ignored = read_body(KeyRotation, call.json() if call.body else {}, call.settings.limits)

    def act(tx: Transaction) -> Response:
        found = _found(tx, call)
        if found.revoked_at is not None:
            raise ConflictProblem("key_revoked", "A revoked key can't be rotated: create another one.")
        key = key_store.rotate_key(tx, key_id=found.id, now=call.now, overlap_ms=rotation.seconds * 1_000)
        call.note(tx, AuditAction(action="api_key.rotated", resource_id=found.id))
        return json_response(ShownApiKeyRecord(**_members(tx, _stored(tx, found.id)), key=key), headers=_SECRET)

    return Work(act=act, ignored=ignored, secret_box=_WITHHELD)


def revoke_key(call: Call) -> Work:
    """End a key and every secret of it; answers the record. What is revoked already is as absent here (contract G25)."""

    def act(tx: Transaction) -> Response:
        found = _found(tx, call)
        if found.revoked_at is not None:
            raise NotFoundProblem("key_revoked", "This API key is revoked already.")
        key_store.revoke_key(tx, key_id=found.id, now=call.now)
        call.note(tx, AuditAction(action="api_key.revoked", resource_id=found.id))
        return json_response(_record(tx, _stored(tx, found.id)))

    return Work(act=act)


def _found(reader: ReadTransaction, call: Call) -> StoredKey:
    return _stored(reader, call.names["key"])


def _stored(reader: ReadTransaction, key_id: str) -> StoredKey:
    key = key_store.find_key(reader, key_id)
    if key is None:
        raise NotFoundProblem("key_not_found", "There is no API key with this id.")
    return key


def _record(reader: ReadTransaction, key: StoredKey) -> ApiKeyRecord:
    return ApiKeyRecord(**_members(reader, key))


def _members(reader: ReadTransaction, key: StoredKey) -> dict[str, Any]:
    return key_members(key, key_store.all_grants(reader, key.principal))


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's rows."""
    small = limits.body_bytes
    return (
        read_operation("api_keys.list", _COLLECTION, ADMIN, list_keys),
        write_operation("api_keys.create", "POST", _COLLECTION, ADMIN, create_key, body_bytes=small),
        read_operation("api_keys.get", _ONE, ADMIN, get_key),
        write_operation("api_keys.revoke", "DELETE", _ONE, ADMIN, revoke_key),
        write_operation("api_keys.rotate", "POST", f"{_ONE}/rotate", ADMIN, rotate_key, body_bytes=small),
    )
