"""The operations of webhooks (contract WH1, WH2, WH3, WH4, WH5, WH6) and of event types (contract H6)."""

from __future__ import annotations

import secrets
import uuid
from typing import Final

from workspaced.core.json_schema import STRING
from workspaced.core.text import as_uuid, normalised
from workspaced.events.catalogue import EVENT_TYPES, schema_of
from workspaced.http.description import Parameter, RequestBody, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.pagination import read_page
from workspaced.http.responses import Headers, Response, etag, json_response
from workspaced.resources.operation_rows import delete, get, patch, post
from workspaced.resources.read_responses import list_headers, versioned_response
from workspaced.resources.webhooks import store
from workspaced.resources.webhooks.records import EventTypeRecord, WebhookRecord, webhook_record
from workspaced.resources.webhooks.rules import default_label, merged_oauth, require_safe, with_defaults
from workspaced.resources.webhooks.values import (
    DEFAULT_GRACE,
    NewWebhook,
    SecretRotation,
    StoredWebhook,
    WebhookChanges,
)
from workspaced.security.permissions import ADMIN, WEBHOOKS_READ, WEBHOOKS_WRITE
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

ALL: Final = "/v1/webhooks"
ONE: Final = f"{ALL}/{{webhook}}"
SORTABLE = frozenset({"createdAt", "updatedAt", "createdBy", "updatedBy", "label", "url", "id"})
_NO_STORE: Headers = (("Cache-Control", "no-store"),)
_ATTRIBUTES = dict(zip(WebhookRecord.__struct_encode_fields__, WebhookRecord.__struct_fields__, strict=True))
_DEFAULTS = {"take": "10", "sortOrder": "DESC", "sortedBy": "createdAt"}


def find_webhook(reader: ReadTransaction, secret_box: SecretBox, call: Call) -> StoredWebhook:
    """Return the webhook that the path names, if the caller owns it or is an administrator.

    Raises:
        NotFoundProblem: there is no such webhook.
    """
    webhook_id = as_uuid(call.names["webhook"])
    return store.get_webhook(reader, secret_box, webhook_id, owner=call.actor, all_owners=_is_administrator(call))


class _WebhookOperations:
    """The handlers of the operations on webhooks. ``secret_box`` encrypts the stored secrets."""

    def __init__(self, secret_box: SecretBox) -> None:
        self._secret_box = secret_box

    async def list_webhooks(self, call: Call) -> Response:
        """List webhooks (contract WH1).

        The caller's webhooks, the newest first. An administrator of the service gets all webhooks.
        200: The webhooks.
        """
        query = {**_DEFAULTS, **{name: text for name, text in call.query.items() if text or name == "search"}}
        page = read_page(query, longest=call.settings.limits.page_length, sortable=SORTABLE)
        text = normalised(call.query.get("search", "")).casefold()

        def find(reader: ReadTransaction) -> list[StoredWebhook]:
            return store.list_webhooks(reader, self._secret_box, owner=call.actor, all_owners=_is_administrator(call))

        records = [
            _visible_record(webhook, call)
            for webhook in await call.store.read(find)
            if text in webhook.definition.label.casefold() or text in webhook.definition.url.casefold()
        ]
        attribute = _ATTRIBUTES[page.sorted_by]
        records.sort(key=lambda record: (getattr(record, attribute), record.id), reverse=page.descending)
        return json_response(page.of(records), headers=(*list_headers(call, page, len(records)), *_NO_STORE))

    def create_webhook(self, tx: Transaction, call: Call, given: NewWebhook) -> Response:
        """Create a webhook (contract WH2).

        Creates a webhook; only its URL is required. `Location` has its path.
        201: It is created.
        409: `id_in_use`: the id is in use. `quota_exceeded`: the owner has the maximum number of webhooks.
        422: `unsafe_url`: deliveries may not be sent to the address of a URL.
        """
        new = with_defaults(given, call.settings.egress)
        webhook_id = new.id or str(uuid.uuid4())
        store.create_webhook(tx, call, self._secret_box, new, webhook_id=webhook_id)
        call.note(tx, "webhook.created", webhook_id, label=new.label)
        return Response(status=201, headers=(("Location", f"{ALL}/{webhook_id}"), etag(1)))

    async def get_webhook(self, call: Call) -> Response:
        """Get a webhook (contract WH3).

        One webhook.
        200: The webhook.
        """
        webhook = await call.store.read(lambda reader: self._get_by_path(reader, call))
        return versioned_response(call, _visible_record(webhook, call), webhook.version, *_NO_STORE)

    def delete_webhook(self, tx: Transaction, call: Call) -> Response:
        """Delete a webhook (contract WH4).

        Deletes the webhook. Deliveries that wait are not sent.
        200: The webhook before it was deleted.
        """
        webhook = self._get_by_path(tx, call)
        call.require_match(webhook.version)
        store.delete_webhook(tx, webhook)
        call.note(tx, "webhook.deleted", webhook.id, label=webhook.definition.label)
        return json_response(_visible_record(webhook, call), headers=_NO_STORE)

    def update_webhook(self, tx: Transaction, call: Call, wanted: WebhookChanges) -> Response:
        """Change a webhook (contract WH5).

        Only the given members change; a list is replaced as a whole.
        200: The webhook.
        422: `unsafe_url`: deliveries may not be sent to the address of a URL.
        """
        egress = call.settings.egress
        given = wanted.given()
        require_safe(given.get("url"), given.get("oauth"), egress)
        secret = given.pop("secret", None)
        webhook = self._get_by_path(tx, call)
        call.require_match(webhook.version)
        if "oauth" in given:
            given["oauth"] = merged_oauth(webhook.definition.oauth, given["oauth"])
        if given.get("label") == "":
            given["label"] = default_label(given.get("url", webhook.definition.url), egress)
        definition = webhook.definition.model_copy(update=given)
        if definition != webhook.definition:
            store.update_webhook(tx, call, self._secret_box, webhook, definition)
            call.note(tx, "webhook.updated", webhook.id, label=definition.label, changed=tuple(sorted(given)))
        if secret and not secrets.compare_digest(secret, webhook.secret):
            self._rotate(tx, call, webhook, secret=secret, grace_seconds=DEFAULT_GRACE)
        return _current_response(call, self._get_by_path(tx, call))

    def rotate_secret(self, tx: Transaction, call: Call, rotation: SecretRotation) -> Response:
        """Rotate a webhook's secret (contract WH6).

        Creates a new secret. The old secrets still sign for 24 hours, or for the time in the body.
        200: The webhook.
        """
        self._rotate(tx, call, self._get_by_path(tx, call), secret=None, grace_seconds=rotation.seconds)
        return _current_response(call, self._get_by_path(tx, call))

    def _get_by_path(self, reader: ReadTransaction, call: Call) -> StoredWebhook:
        return find_webhook(reader, self._secret_box, call)

    def _rotate(
        self, tx: Transaction, call: Call, webhook: StoredWebhook, *, secret: str | None, grace_seconds: int
    ) -> None:
        call.note(tx, "webhook.secret_rotated", webhook.id, label=webhook.definition.label)
        store.rotate_secret(tx, call, self._secret_box, webhook, secret=secret, grace_seconds=grace_seconds)


async def list_event_types(_call: Call) -> Response:
    """List event types (contract H6).

    Every event type, with the JSON Schema of the body that is sent.
    200: The types.
    """
    return json_response(
        [
            EventTypeRecord(type=kind.name, description=kind.description, schema=schema_of(kind))
            for kind in EVENT_TYPES.values()
        ]
    )


def _is_administrator(call: Call) -> bool:
    """Whether the caller may read and write the webhooks of every owner (contract H2)."""
    return call.principal is not None and call.principal.may(ADMIN)


def _visible_record(webhook: StoredWebhook, call: Call) -> WebhookRecord:
    """Return the record of a webhook. Only an owner with the permission to write sees its secrets (contract H3)."""
    principal = call.principal
    full = principal is not None and webhook.owner == principal.name and principal.may_somewhere(WEBHOOKS_WRITE)
    return webhook_record(webhook, full=full)


def _current_response(call: Call, webhook: StoredWebhook) -> Response:
    return json_response(_visible_record(webhook, call), headers=(etag(webhook.version), *_NO_STORE))


def operations(limits: Limits, secret_box: SecretBox) -> tuple[Operation, ...]:
    """Return the operations in the order of the interface document.

    The paths have no workspace, so a scope on any workspace suffices. `find_webhook` checks the owner (contract H2).
    """
    handlers = _WebhookOperations(secret_box)
    write = {"anywhere": True, "body_bytes": limits.body_bytes}
    secret = {**write, "secret_box": secret_box}
    shown = Success(WebhookRecord, ("ETag", "Cache"))
    search = Parameter("search", "A part of the label or of the URL, in any case.", STRING)
    following = links(
        {"id": "$request.body#/id"},
        get="webhooks.get",
        update="webhooks.update",
        delete="webhooks.delete",
        rotateSecret="webhooks.rotate_secret",
        test="webhooks.test",
        listDeliveries="webhooks.list_deliveries",
    )
    return (
        get("webhooks.list", ALL, WEBHOOKS_READ, handlers.list_webhooks, anywhere=True).described(
            success=listed(WebhookRecord, "Cache"), query=(search, *paging(limits, SORTABLE, take="10", order="DESC"))
        ),
        post("webhooks.create", ALL, WEBHOOKS_WRITE, handlers.create_webhook, **write).described(
            body=RequestBody(NewWebhook, {"url": "https://example.com/hook", "dataEvents": ["data_sink.*"]}),
            success=Success(None, ("ETag", "Location"), status=201, links=following),
        ),
        get("webhooks.get", ONE, WEBHOOKS_READ, handlers.get_webhook, anywhere=True).described(
            success=shown, etag=True
        ),
        delete("webhooks.delete", ONE, WEBHOOKS_WRITE, handlers.delete_webhook, anywhere=True).described(
            success=Success(WebhookRecord, ("Cache",)), etag=True
        ),
        patch("webhooks.update", ONE, WEBHOOKS_WRITE, handlers.update_webhook, **secret).described(
            body=RequestBody(WebhookChanges, {"enabled": True}), success=shown, etag=True
        ),
        post(
            "webhooks.rotate_secret",
            f"{ONE}/rotate-secret",
            WEBHOOKS_WRITE,
            handlers.rotate_secret,
            secret_box=secret_box,
            **write,
        ).described(body=RequestBody(SecretRotation, {"gracePeriodSeconds": 3600}, required=False), success=shown),
        get("webhooks.event_types", f"{ALL}/event-types", WEBHOOKS_READ, list_event_types, anywhere=True).described(
            success=Success(list[EventTypeRecord])
        ),
    )
