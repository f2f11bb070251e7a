"""Deliveries to webhooks, as OpenAPI's ``webhooks`` (contract H6, H7, H8, H9). Performs no I/O."""

from __future__ import annotations

from typing import Any, Final

from workspaced.core.json_schema import Schema, string
from workspaced.events.catalogue import EVENT_TYPES, DomainEventType, schema_of

_TAG: Final = "Events"
_SIGNED: Final = (
    "Signed by Standard Webhooks 1.0 (`webhook-id`, `webhook-timestamp`, `webhook-signature`) with the webhook's secrets. "
    "Sent at least once and in any order: use `webhook-id` and `sequence`."
)


def webhooks() -> dict[str, Any]:
    """Return one path item for each event type."""
    return {kind.name: {"post": _delivery(kind)} for kind in EVENT_TYPES.values()}


def _delivery(kind: DomainEventType) -> dict[str, Any]:
    schema = {name: value for name, value in schema_of(kind).items() if name != "$schema"}
    needed = f" Sent to webhooks of owners that have `{kind.scope}` on the workspace." if kind.scope else ""
    return {
        "operationId": f"event.{kind.name}",
        "tags": [_TAG],
        "summary": kind.description,
        "description": f"{_SIGNED}{needed}",
        "parameters": [
            _header(
                "webhook-id", "The id of the event, the same for every attempt.", string(pattern="^evt_[0-9a-f]{32}$")
            ),
            _header(
                "webhook-timestamp", "When this attempt was made, in seconds since 1970.", string(pattern="^[0-9]+$")
            ),
            _header(
                "webhook-signature",
                "`v1,` and base64 of HMAC-SHA256, one for each valid secret.",
                string(pattern="^v1,"),
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "2XX": {
                "description": "Accepted. After any other status, redirects included, the delivery is tried again later."
            },
            "410": {"description": "The webhook is disabled at once."},
        },
    }


def _header(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": True, "description": about, "schema": schema}
