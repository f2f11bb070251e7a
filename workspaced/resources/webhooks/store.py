"""Webhooks in the database; what is secret about them passes through the secret box on its way in and out."""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Sequence
from typing import Final

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.events.fan_out import DELIVERIES
from workspaced.resources.webhooks.signature import new_secret
from workspaced.resources.webhooks.values import Definition, NewWebhook, OAuth, StoredWebhook
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.webhooks", "queries.sql")
_MOST_SECRETS = 5
DELETED_WEBHOOKS: Final = "deleted_webhooks"
"""The channel on which a commit says that a webhook was deleted, and its deliveries are to be removed."""


def list_webhooks(
    reader: ReadTransaction, secret_box: SecretBox, *, owner: str, everybody: bool
) -> list[StoredWebhook]:
    """Those of an owner, or all, oldest first."""
    rows = reader.all(_SQL["list_webhooks"], {"owner": owner, "everybody": int(everybody)})
    return [opened(row, secret_box) for row in rows]


def get_webhook(
    reader: ReadTransaction, secret_box: SecretBox, webhook_id: str | None, *, owner: str, everybody: bool
) -> StoredWebhook:
    """The one with this id, where it is the owner's or everybody's are open (contract H2).

    Raises:
        NotFoundProblem: there is none.
    """
    row = None
    if webhook_id:
        row = reader.one(_SQL["find_webhook"], {"id": webhook_id, "owner": owner, "everybody": int(everybody)})
    if row is None:
        raise NotFoundProblem("webhook_not_found", "There is no such webhook.")
    return opened(row, secret_box)


def find_by_number(reader: ReadTransaction, secret_box: SecretBox, number: int) -> StoredWebhook | None:
    """The one with this number."""
    row = reader.one(_SQL["find_webhook_by_number"], {"number": number})
    return opened(row, secret_box) if row else None


def create_webhook(
    tx: Transaction, secret_box: SecretBox, new: NewWebhook, *, webhook_id: str, actor: str, now: int, limits: Limits
) -> None:
    """The webhook, which belongs to who makes it, with its first secret.

    Raises:
        ConflictProblem: the id is in use, or the quota is reached.
    """
    if tx.one(_SQL["id_in_use"], {"id": webhook_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    tx.one(_SQL["queue_for_owner"], {"owner": actor})
    (count,) = tx.one(_SQL["count_of_owner"], {"owner": actor}) or (0,)
    if limits.webhooks_per_owner and count >= limits.webhooks_per_owner:
        raise ConflictProblem("quota_exceeded", f"One owner may have {limits.webhooks_per_owner} webhooks.")
    reason = "" if new.enabled else BY_REQUEST
    values = {**_columns(new, secret_box, webhook_id), "disabled_reason": reason, "now": now, "actor": actor}
    row = tx.one(_SQL["insert_webhook"], {**values, "id": webhook_id, "owner": actor})
    if row is None:
        raise LookupError(f"webhook {webhook_id} was not inserted")
    _add_secret(tx, secret_box, row[0], webhook_id, new.secret or new_secret(secrets.token_bytes))


BY_REQUEST = "disabled by request"


def update_webhook(
    tx: Transaction, secret_box: SecretBox, webhook: StoredWebhook, definition: Definition, *, actor: str, now: int
) -> None:
    """Write the definition, if it differs."""
    if definition == webhook.definition:
        return
    reason = webhook.disabled_reason
    if definition.enabled != webhook.definition.enabled:
        reason = "" if definition.enabled else BY_REQUEST
    values = {**_columns(definition, secret_box, webhook.id), "disabled_reason": reason, "now": now, "actor": actor}
    tx.run(_SQL["update_webhook"], {**values, "number": webhook.number})
    if definition.enabled and not webhook.definition.enabled:
        tx.notify(DELIVERIES)  # what waited while it was disabled


def rotate_secret(
    tx: Transaction,
    secret_box: SecretBox,
    webhook: StoredWebhook,
    *,
    secret: str | None,
    grace_seconds: int,
    actor: str,
    now: int,
) -> None:
    """A new secret (a given one, or a made one); those so far sign on until the grace ends, the newest few of them."""
    tx.run(_SQL["end_secrets"], {"webhook": webhook.number, "until": now + grace_seconds * 1_000})
    _add_secret(tx, secret_box, webhook.number, webhook.id, secret or new_secret(secrets.token_bytes))
    tx.run(_SQL["drop_secrets"], {"webhook": webhook.number, "now": now, "most": _MOST_SECRETS})
    tx.run(_SQL["touch_webhook"], {"number": webhook.number, "actor": actor, "now": now})


def delete_webhook(tx: Transaction, webhook: StoredWebhook) -> None:
    """The webhook is gone for every request, and nothing is sent to it; its rows are removed by `remove_deleted`."""
    for name in ("delete_webhook", "drop_all_secrets", "drop_fan_outs"):
        tx.run(_SQL[name], {"number": webhook.number})
    tx.notify(DELETED_WEBHOOKS)


def any_deleted(reader: ReadTransaction) -> bool:
    """Whether `remove_deleted` has anything to do."""
    return reader.one(_SQL["any_deleted_webhook"]) is not None


def remove_deleted(tx: Transaction, most: int) -> int:
    """Remove at most so many deliveries of deleted webhooks; how many rows, 0 when none is left or another process is at it."""
    if tx.one(_SQL["queue_for_removal"]) is None or (row := tx.one(_SQL["deleted_webhook"])) is None:
        return 0
    number, removed_to = row
    gone = tx.all(_SQL["remove_deliveries"], {"webhook": number, "after": removed_to, "most": most})
    if len(gone) == most:
        tx.run(_SQL["note_removal"], {"webhook": number, "number": max(one[0] for one in gone)})
        return most
    return len(gone) + tx.run(_SQL["remove_webhook"], {"webhook": number})


def signing_secrets(
    reader: ReadTransaction, secret_box: SecretBox, webhook: StoredWebhook, *, now: int
) -> tuple[str, ...]:
    """All that sign now, the newest first."""
    rows = reader.all(_SQL["signing_secrets"], {"webhook": webhook.number, "now": now})
    return tuple(secret_box.open(row[0], purpose=_purpose("secret", webhook.id)).decode() for row in rows)


def seal_what_is_plain(tx: Transaction, secret_box: SecretBox) -> int:
    """After the service was given a key: seal what was stored without one. How many rows."""
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


def _resealed(secret_box: SecretBox, stored: bytes, what: str, webhook_id: str) -> bytes:
    purpose = _purpose(what, webhook_id)
    return secret_box.seal(secret_box.open(stored, purpose=purpose), purpose=purpose)


def _add_secret(tx: Transaction, secret_box: SecretBox, number: int, webhook_id: str, secret: str) -> None:
    sealed = secret_box.seal(secret.encode(), purpose=_purpose("secret", webhook_id))
    tx.run(_SQL["insert_secret"], {"webhook": number, "secret": sealed})


def _purpose(what: str, webhook_id: str) -> str:
    return f"webhook/{webhook_id}/{what}"


def _columns(definition: Definition, secret_box: SecretBox, webhook_id: str) -> dict[str, object]:
    oauth = dataclasses.asdict(definition.oauth) if definition.oauth else {}
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


def opened(row: Row, secret_box: SecretBox) -> StoredWebhook:
    """A row of a SELECT of webhooks.

    Raises:
        Unavailable: it was sealed with a key that this process does not have.
    """
    webhook_id = row[1]
    headers = json.loads(secret_box.open(row[5], purpose=_purpose("headers", webhook_id)))
    oauth = json.loads(secret_box.open(row[7], purpose=_purpose("oauth", webhook_id)))
    return StoredWebhook(
        number=row[0],
        id=webhook_id,
        owner=row[2],
        definition=Definition(
            label=row[3],
            url=row[4],
            headers=tuple(headers),
            data_events=tuple(json.loads(row[6])),
            oauth=OAuth(**oauth) if oauth else None,
            workspace_ids=tuple(json.loads(row[8])),
            ignore_client_ids=tuple(json.loads(row[9])),
            coalesce=bool(row[10]),
            in_order=bool(row[19]),
            batch_entries=bool(row[20]),
            enabled=bool(row[11]),
        ),
        disabled_reason=row[12],
        secret=secret_box.open(row[13], purpose=_purpose("secret", webhook_id)).decode(),
        version=row[14],
        created_at=row[15],
        updated_at=row[16],
        created_by=row[17],
        updated_by=row[18],
    )
