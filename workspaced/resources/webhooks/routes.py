"""The webhooks' operations: the document's six rows, and which events there are."""

from __future__ import annotations

import dataclasses
import secrets
import uuid
from functools import partial
from typing import Final

from workspaced.core.json_body import decode
from workspaced.core.members import read_body
from workspaced.core.text import as_uuid
from workspaced.events.catalogue import EVENT_TYPES
from workspaced.events.schemas import schema_of
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import read_page
from workspaced.http.responses import Headers, Response, etag, json_response
from workspaced.resources.webhooks import store
from workspaced.resources.webhooks.records import EventTypeRecord, WebhookRecord, record
from workspaced.resources.webhooks.rules import default_label, merged_oauth, read_new_webhook, read_webhook_changes
from workspaced.resources.webhooks.values import DEFAULT_GRACE, SecretRotation, StoredWebhook
from workspaced.security.audit_log import AuditAction
from workspaced.security.permissions import ADMIN
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

READ: Final = "webhooks:read"
WRITE: Final = "webhooks:write"
ALL: Final = "/v1/webhooks"
ONE: Final = f"{ALL}/{{webhook}}"
SORTABLE = frozenset({"createdAt", "updatedAt", "createdBy", "updatedBy", "label", "url", "id"})
NO_STORE: Headers = (("Cache-Control", "no-store"),)
_ATTRIBUTES = dict(zip(WebhookRecord.__struct_encode_fields__, WebhookRecord.__struct_fields__, strict=True))
_DEFAULTS = {"take": "10", "sortOrder": "DESC", "sortedBy": "createdAt"}


def owner_of(call: Call) -> str:
    """Whose webhooks the caller has: his own."""
    return call.actor


def sees_all(call: Call) -> bool:
    """Whether everybody's webhooks are open to the caller (contract H2)."""
    return call.principal is not None and call.principal.may(ADMIN)


def sees_secrets(call: Call, webhook: StoredWebhook) -> bool:
    """Whether the caller is shown what is secret about it (contract H3)."""
    principal = call.principal
    return principal is not None and webhook.owner == principal.name and principal.may_somewhere(WRITE)


def found(reader: ReadTransaction, secret_box: SecretBox, call: Call) -> StoredWebhook:
    """The webhook that the path names, if the caller may know of it.

    Raises:
        NotFound: there is none.
    """
    webhook_id = as_uuid(call.names["webhook"])
    return store.get_webhook(reader, secret_box, webhook_id, owner=owner_of(call), everybody=sees_all(call))


async def list_webhooks(secret_box: SecretBox, call: Call) -> Response:
    """List webhooks (contract WH1)."""
    query = {**_DEFAULTS, **{name: text for name, text in call.query.items() if text or name == "search"}}
    page = read_page(query, longest=call.settings.limits.page_length, sortable=SORTABLE)
    wanted = call.query.get("search", "").casefold()

    def question(reader: ReadTransaction) -> list[StoredWebhook]:
        return store.list_webhooks(reader, secret_box, owner=owner_of(call), everybody=sees_all(call))

    matching = [
        (record(webhook, full=sees_secrets(call, webhook)), webhook)
        for webhook in await call.store.read(question)
        if wanted in webhook.definition.label.casefold() or wanted in webhook.definition.url.casefold()
    ]
    matching.sort(key=lambda one: (getattr(one[0], _ATTRIBUTES[page.sorted_by]), one[1].id), reverse=page.descending)
    shown = [one for one, _ in page.of(matching)]
    headers = page.headers(total=len(matching), path=call.path, query=call.query)
    return json_response(shown, headers=(*headers, *NO_STORE))


def create_webhook(secret_box: SecretBox, call: Call) -> Work:
    """Create a webhook (contract WH2)."""
    new, ignored = read_new_webhook(call.json(), call.settings.limits, call.settings.egress)
    webhook_id = new.id or str(uuid.uuid4())

    def act(tx: Transaction) -> Response:
        limits = call.settings.limits
        store.create_webhook(tx, secret_box, new, webhook_id=webhook_id, actor=call.actor, now=call.now, limits=limits)
        call.note(tx, AuditAction(action="webhook.created", resource_id=webhook_id))
        return Response(status=201, headers=(("Location", f"{ALL}/{webhook_id}"), etag(1)))

    return Work(act=act, ignored=ignored)


async def get_webhook(secret_box: SecretBox, call: Call) -> Response:
    """Get a webhook (contract WH3)."""
    webhook = await call.store.read(lambda reader: found(reader, secret_box, call))
    if call.has_seen(webhook.version):
        return Response(status=304, headers=(etag(webhook.version), *NO_STORE))
    return _shown(webhook, call)


def delete_webhook(secret_box: SecretBox, call: Call) -> Work:
    """Delete a webhook (contract WH4): what waits for it is cancelled."""

    def act(tx: Transaction) -> Response:
        webhook = found(tx, secret_box, call)
        call.require_match(webhook.version)
        store.delete_webhook(tx, webhook)
        call.note(tx, AuditAction(action="webhook.deleted", resource_id=webhook.id))
        return json_response(record(webhook, full=sees_secrets(call, webhook)), headers=NO_STORE)

    return Work(act=act)


def update_webhook(secret_box: SecretBox, call: Call) -> Work:
    """Update a webhook (contract WH5)."""
    egress = call.settings.egress
    changes, ignored = read_webhook_changes(call.json(), call.settings.limits, egress)
    secret = changes.pop("secret", None)

    def act(tx: Transaction) -> Response:
        webhook = found(tx, secret_box, call)
        call.require_match(webhook.version)
        given = dict(changes)
        if "oauth" in given:
            given["oauth"] = merged_oauth(webhook.definition.oauth, given["oauth"])
        if given.get("label") == "":
            given["label"] = default_label(given.get("url", webhook.definition.url), egress)
        definition = dataclasses.replace(webhook.definition, **given)
        store.update_webhook(tx, secret_box, webhook, definition, actor=call.actor, now=call.now)
        if definition != webhook.definition:
            call.note(tx, AuditAction(action="webhook.updated", resource_id=webhook.id, changed=tuple(sorted(given))))
        if secret and not secrets.compare_digest(secret, webhook.secret):
            _rotate(tx, secret_box, webhook, call, secret=secret, grace_seconds=DEFAULT_GRACE)
        return _shown(found(tx, secret_box, call), call)

    return Work(act=act, ignored=ignored, secret_box=secret_box)


def rotate_secret(secret_box: SecretBox, call: Call) -> Work:
    """Rotate the secret of a webhook (contract WH6)."""
    body = decode(call.body) if call.body.strip() else {}
    rotation, ignored = read_body(SecretRotation, body, call.settings.limits)

    def act(tx: Transaction) -> Response:
        _rotate(tx, secret_box, found(tx, secret_box, call), call, secret=None, grace_seconds=rotation.seconds)
        return _shown(found(tx, secret_box, call), call)

    return Work(act=act, ignored=ignored, secret_box=secret_box)


async def list_event_types(_call: Call) -> Response:
    """Which events there are, and what is sent for each (contract H6)."""
    return json_response(
        [
            EventTypeRecord(type=kind.name, description=kind.description, schema=schema_of(kind))
            for kind in EVENT_TYPES.values()
        ]
    )


def _rotate(
    tx: Transaction,
    secret_box: SecretBox,
    webhook: StoredWebhook,
    call: Call,
    *,
    secret: str | None,
    grace_seconds: int,
) -> None:
    call.note(tx, AuditAction(action="webhook.secret_rotated", resource_id=webhook.id))
    store.rotate_secret(
        tx, secret_box, webhook, secret=secret, grace_seconds=grace_seconds, actor=call.actor, now=call.now
    )


def _shown(webhook: StoredWebhook, call: Call) -> Response:
    return json_response(record(webhook, full=sees_secrets(call, webhook)), headers=(etag(webhook.version), *NO_STORE))


def operations(limits: Limits, secret_box: SecretBox) -> tuple[Operation, ...]:
    """In the document's order. The paths hold no workspace: a scope on any one suffices, ownership decides (contract H2)."""
    size = limits.body_bytes
    return (
        Operation(
            name="webhooks.list",
            method="GET",
            path=ALL,
            scope=READ,
            anywhere=True,
            read=partial(list_webhooks, secret_box),
        ),
        Operation(
            name="webhooks.create",
            method="POST",
            path=ALL,
            scope=WRITE,
            anywhere=True,
            prepare=partial(create_webhook, secret_box),
            body_bytes=size,
        ),
        Operation(
            name="webhooks.get",
            method="GET",
            path=ONE,
            scope=READ,
            anywhere=True,
            read=partial(get_webhook, secret_box),
        ),
        Operation(
            name="webhooks.delete",
            method="DELETE",
            path=ONE,
            scope=WRITE,
            anywhere=True,
            prepare=partial(delete_webhook, secret_box),
        ),
        Operation(
            name="webhooks.update",
            method="PATCH",
            path=ONE,
            scope=WRITE,
            anywhere=True,
            prepare=partial(update_webhook, secret_box),
            body_bytes=size,
        ),
        Operation(
            name="webhooks.rotate_secret",
            method="POST",
            path=f"{ONE}/rotate-secret",
            scope=WRITE,
            anywhere=True,
            prepare=partial(rotate_secret, secret_box),
            body_bytes=size,
        ),
        Operation(
            name="webhooks.event_types",
            method="GET",
            path=f"{ALL}/event-types",
            scope=READ,
            anywhere=True,
            read=list_event_types,
        ),
    )
