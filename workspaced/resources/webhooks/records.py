"""A webhook as the document shows it, and as much of it as the caller may see (contract H3, H4, H5)."""

from __future__ import annotations

from workspaced.core.timestamps import stamp
from workspaced.events.catalogue import unknown
from workspaced.resources.webhooks.signature import masked
from workspaced.resources.webhooks.values import OAuth, StoredWebhook


def record(webhook: StoredWebhook, *, full: bool) -> dict[str, object]:
    """``full``: the caller owns it and may write it; others see neither the secret nor the headers' values."""
    chosen = webhook.definition
    return {
        "id": webhook.id,
        "label": chosen.label,
        "url": chosen.url,
        "signingSecret": webhook.secret if full else masked(webhook.secret),
        "headers": [text if full else f"{text.partition(':')[0]}: …" for text in chosen.headers],
        "dataEvents": list(chosen.data_events),
        "oauthConnection": _oauth(chosen.oauth),
        "createdBy": webhook.created_by,
        "createdAt": stamp(webhook.created_at),
        "updatedAt": stamp(webhook.updated_at),
        "updatedBy": webhook.updated_by,
        "enabled": chosen.enabled,
        "disabledReason": webhook.disabled_reason,
        "workspaceIds": list(chosen.workspace_ids),
        "ignoreClientIds": list(chosen.ignore_client_ids),
        "coalesce": chosen.coalesce,
        "inOrder": chosen.in_order,
        "batchEntries": chosen.batch_entries,
        "unknownDataEvents": list(unknown(chosen.data_events)),
    }


def _oauth(oauth: OAuth | None) -> dict[str, str]:
    if oauth is None:
        return {}
    optional = {"scope": oauth.scope, "audience": oauth.audience}
    return {
        "tokenUrl": oauth.token_url,
        "clientId": oauth.client_id,
        **{name: text for name, text in optional.items() if text},
    }
