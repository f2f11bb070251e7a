"""Webhooks in the database. Secrets, headers and OAuth credentials are stored sealed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Final

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.events.fan_out import DELIVERIES
from workspaced.http.operations import Call
from workspaced.resources.webhooks.signature import new_secret
from workspaced.resources.webhooks.values import Definition, NewWebhook, OAuth, StoredWebhook
from workspaced.security import audit_log as audit
from workspaced.security.audit_log import SYSTEM, AuditAction
from workspaced.security.secret_box import SecretBox, SecretsSealed
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.webhooks", "queries.sql")
_MOST_SECRETS = 5
_BY_REQUEST = "disabled by request"
SEALED_REASON: Final = (
    "its secrets were encrypted with another key; start the service with that key, or create it again"
)
"""Why a webhook is disabled if its secrets can't be decrypted."""
DELETED_WEBHOOKS: Final = "deleted_webhooks"
"""The channel that a commit notifies when it deletes a webhook, so that its deliveries are removed."""


def list_webhooks(
    reader: ReadTransaction, secret_box: SecretBox, *, owner: str, all_owners: bool
) -> list[StoredWebhook]:
    """Return the webhooks of an owner, or all webhooks, the oldest first."""
    rows = reader.all(_SQL["list_webhooks"], {"owner": owner, "all_owners": int(all_owners)})
    return [_webhook(row, secret_box) for row in rows]


def get_webhook(
    reader: ReadTransaction, secret_box: SecretBox, webhook_id: str | None, *, owner: str, all_owners: bool
) -> StoredWebhook:
    """Return the webhook with this id, if it belongs to the owner or ``all_owners`` is true (contract H2).

    Raises:
        NotFoundProblem: there is no such webhook.
    """
    row = None
    if webhook_id:
        row = reader.one(_SQL["find_webhook"], {"id": webhook_id, "owner": owner, "all_owners": int(all_owners)})
    if row is None:
        raise NotFoundProblem("webhook_not_found", "There is no such webhook.")
    return _webhook(row, secret_box)


def find_by_number(reader: ReadTransaction, secret_box: SecretBox, number: int) -> StoredWebhook | None:
    """Return the webhook with this number, if there is one."""
    row = reader.one(_SQL["find_webhook_by_number"], {"number": number})
    return _webhook(row, secret_box) if row else None


def create_webhook(tx: Transaction, call: Call, secret_box: SecretBox, new: NewWebhook, *, webhook_id: str) -> None:
    """Insert a webhook of the caller, with its first secret.

    Raises:
        ConflictProblem: the id is in use, or the quota is reached.
    """
    if tx.one(_SQL["id_in_use"], {"id": webhook_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    tx.one(_SQL["queue_for_owner"], {"owner": call.actor})
    (count,) = tx.one(_SQL["count_of_owner"], {"owner": call.actor}) or (0,)
    most = call.settings.limits.webhooks_per_owner
    if most and count >= most:
        raise ConflictProblem("quota_exceeded", f"One owner may have {most} webhooks.")
    reason = "" if new.enabled else _BY_REQUEST
    values = {**_columns(new, secret_box, webhook_id), "disabled_reason": reason, **call.authorship}
    (number,) = tx.existing(_SQL["insert_webhook"], {**values, "id": webhook_id, "owner": call.actor})
    _add_secret(tx, secret_box, number, webhook_id, new.secret or new_secret(secrets.token_bytes))


def update_webhook(
    tx: Transaction, call: Call, secret_box: SecretBox, webhook: StoredWebhook, definition: Definition
) -> None:
    """Replace the definition of a webhook.

    Raises SecretsSealed: the present definition can't be decrypted, so the update could lose a part of the definition.
    """
    reason = webhook.disabled_reason
    if definition.enabled != webhook.definition.enabled:
        reason = "" if definition.enabled else _BY_REQUEST
    values = {**_columns(definition, secret_box, webhook.id), "disabled_reason": reason, **call.authorship}
    _require_open(webhook)
    tx.run(_SQL["update_webhook"], {**values, "number": webhook.number})
    if definition.enabled and not webhook.definition.enabled:
        tx.notify(DELIVERIES)  # wakes the worker for deliveries that were queued earlier


def rotate_secret(
    tx: Transaction,
    call: Call,
    secret_box: SecretBox,
    webhook: StoredWebhook,
    *,
    secret: str | None,
    grace_seconds: int,
) -> None:
    """Add a secret; None: a new random secret. Older secrets still sign for ``grace_seconds``. Only the newest secrets stay.

    Raises:
        SecretsSealed: the older secrets can't be decrypted, so they can't sign.
    """
    _require_open(webhook)
    tx.run(_SQL["end_secrets"], {"webhook": webhook.number, "until": call.now + grace_seconds * 1_000})
    _add_secret(tx, secret_box, webhook.number, webhook.id, secret or new_secret(secrets.token_bytes))
    tx.run(_SQL["drop_secrets"], {"webhook": webhook.number, "now": call.now, "most": _MOST_SECRETS})
    tx.run(_SQL["touch_webhook"], {"number": webhook.number, **call.authorship})


def _require_open(webhook: StoredWebhook) -> None:
    if webhook.sealed is not None:
        raise webhook.sealed


def delete_webhook(tx: Transaction, webhook: StoredWebhook) -> None:
    """Hide a webhook from every request, and stop its deliveries. `remove_deleted` removes its rows later."""
    for name in ("delete_webhook", "drop_all_secrets", "drop_fan_outs"):
        tx.run(_SQL[name], {"number": webhook.number})
    tx.notify(DELETED_WEBHOOKS)


def any_deleted(reader: ReadTransaction) -> bool:
    """Whether `remove_deleted` has rows to remove."""
    return reader.one(_SQL["any_deleted_webhook"]) is not None


def remove_deleted(tx: Transaction, most: int) -> int:
    """Remove up to ``most`` deliveries of deleted webhooks. Return how many; 0 if another process removes rows."""
    if tx.one(_SQL["queue_for_removal"]) is None or (row := tx.one(_SQL["deleted_webhook"])) is None:
        return 0
    number, removed_to = row
    removed = tx.all(_SQL["remove_deliveries"], {"webhook": number, "after": removed_to, "most": most})
    if len(removed) == most:
        tx.run(_SQL["note_removal"], {"webhook": number, "number": max(one[0] for one in removed)})
        return most
    return len(removed) + tx.run(_SQL["remove_webhook"], {"webhook": number})


def signing_secrets(
    reader: ReadTransaction, secret_box: SecretBox, webhook: StoredWebhook, *, now: int
) -> tuple[str, ...]:
    """Return the secrets that sign deliveries now, the newest first.

    Raises:
        SecretsSealed: a secret of the webhook can't be decrypted.
    """
    _require_open(webhook)
    rows = reader.all(_SQL["signing_secrets"], {"webhook": webhook.number, "now": now})
    return tuple(secret_box.open(row[0], purpose=_purpose("secret", webhook.id)).decode() for row in rows)


def seal_plain_texts(tx: Transaction, secret_box: SecretBox) -> int:
    """Encrypt secrets that were stored before the service had an encryption key. Return the number of changed rows."""
    count = 0
    for number, webhook_id, headers, oauth in tx.all(_SQL["sealed_texts"]):
        if secret_box.is_plain(headers) or secret_box.is_plain(oauth):
            count += tx.run(
                _SQL["set_sealed_texts"],
                {
                    "number": number,
                    "headers": _resealed(secret_box, headers, "headers", webhook_id),
                    "oauth": _resealed(secret_box, oauth, "oauth", webhook_id),
                },
            )
    for number, webhook_id, secret in tx.all(_SQL["sealed_secrets"]):
        if secret_box.is_plain(secret):
            sealed = _resealed(secret_box, secret, "secret", webhook_id)
            count += tx.run(_SQL["set_secret"], {"number": number, "secret": sealed})
    return count


def enable_readable(tx: Transaction, secret_box: SecretBox, *, now: int) -> int:
    """Enable the webhooks that were disabled with `SEALED_REASON`, if their secrets can be decrypted now. Return how many."""
    count = 0
    for (number,) in tx.all(_SQL["disabled_for"], {"reason": SEALED_REASON}):
        webhook = find_by_number(tx, secret_box, number)
        if webhook is None:
            continue
        try:
            signing_secrets(tx, secret_box, webhook, now=now)
        except SecretsSealed:
            continue
        count += tx.run(_SQL["enable"], {"number": number, "now": now})
        action = AuditAction(action="webhook.enabled", resource_id=webhook.id, resource_label=webhook.definition.label)
        audit.note(tx, SYSTEM, action, now=now)
    if count:
        tx.notify(DELIVERIES)
    return count


def _resealed(secret_box: SecretBox, stored: bytes, what: str, webhook_id: str) -> bytes:
    if not secret_box.is_plain(stored):
        return stored
    purpose = _purpose(what, webhook_id)
    return secret_box.seal(secret_box.open(stored, purpose=purpose), purpose=purpose)


def _add_secret(tx: Transaction, secret_box: SecretBox, number: int, webhook_id: str, secret: str) -> None:
    sealed = secret_box.seal(secret.encode(), purpose=_purpose("secret", webhook_id))
    tx.run(_SQL["insert_secret"], {"webhook": number, "secret": sealed})


def _purpose(what: str, webhook_id: str) -> str:
    return f"webhook/{webhook_id}/{what}"


def _columns(definition: Definition, secret_box: SecretBox, webhook_id: str) -> dict[str, object]:
    oauth = definition.oauth.model_dump() if definition.oauth else {}
    return {
        "label": definition.label,
        "url": definition.url,
        "headers": secret_box.seal(_json(definition.headers).encode(), purpose=_purpose("headers", webhook_id)),
        "data_events": _json(definition.data_events),
        "oauth": secret_box.seal(_json(oauth).encode(), purpose=_purpose("oauth", webhook_id)),
        "workspace_ids": _json(definition.workspace_ids),
        "ignore_client_ids": _json(definition.ignore_client_ids),
        "coalesce_updates": int(definition.coalesce),
        "in_order": int(definition.in_order),
        "batch_entries": int(definition.batch_entries),
        "enabled": int(definition.enabled),
    }


def _json(value: Sequence[str] | dict[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _webhook(row: Row, secret_box: SecretBox) -> StoredWebhook:
    """Return the webhook of a row. Its secrets are decrypted if this process has the key."""
    webhook_id = row[1]
    sealed: SecretsSealed | None = None
    try:
        headers, oauth, secret = (
            secret_box.open(stored, purpose=_purpose(what, webhook_id)).decode()
            for what, stored in (("headers", row[5]), ("oauth", row[7]), ("secret", row[13]))
        )
    except SecretsSealed as problem:
        headers, oauth, secret, sealed = "[]", "{}", "", problem
    credentials = json.loads(oauth)
    return StoredWebhook(
        number=row[0],
        id=webhook_id,
        owner=row[2],
        definition=Definition.model_construct(
            label=row[3],
            url=row[4],
            headers=tuple(json.loads(headers)),
            data_events=tuple(json.loads(row[6])),
            oauth=OAuth.model_construct(**credentials) if credentials else None,
            workspace_ids=tuple(json.loads(row[8])),
            ignore_client_ids=tuple(json.loads(row[9])),
            coalesce=bool(row[10]),
            in_order=bool(row[19]),
            batch_entries=bool(row[20]),
            enabled=bool(row[11]),
        ),
        disabled_reason=row[12],
        secret=secret,
        version=row[14],
        created_at=row[15],
        updated_at=row[16],
        created_by=row[17],
        updated_by=row[18],
        sealed=sealed,
    )
