"""One attempt to deliver: sign the request, send it, classify the response (contract H5, H9, H11)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import structlog

from ingestd.wire.retry_after import retry_after_seconds
from workspaced import __version__
from workspaced.events.payload import batch_of
from workspaced.resources.webhooks.delivery_rules import RETRY_AFTER_CAP_SECONDS
from workspaced.resources.webhooks.delivery_store import AttemptOutcome, DeliveryClaim
from workspaced.resources.webhooks.oauth import Tokens
from workspaced.resources.webhooks.signature import signature_headers
from workspaced.resources.webhooks.values import header_of
from workspaced.security.egress.client import EgressClient, ReceiverResponse, ReceiverUnreachable
from workspaced.settings.workers import DeliverySettings


class Attempts:
    """Makes attempts to deliver. ``now`` returns milliseconds since 1970."""

    def __init__(self, client: EgressClient, *, settings: DeliverySettings, now: Callable[[], int]) -> None:
        self._client = client
        self._tokens = Tokens(client, now=now)
        self._settings = settings
        self._now = now

    async def make(self, claim: DeliveryClaim) -> AttemptOutcome:
        """Send once, and return the outcome before the lease ends.

        Every exception counts as a failed attempt. After an exception of this method, no outcome would be
        recorded: the delivery would be tried forever, and would block later deliveries.
        """
        at = self._now()
        loop = asyncio.get_running_loop()
        started = loop.time()

        def failed(error: str) -> AttemptOutcome:
            milliseconds = round((loop.time() - started) * 1_000)
            return AttemptOutcome(at=at, milliseconds=milliseconds, status_code=None, error=error)

        try:
            async with asyncio.timeout(self._settings.lease_seconds * 0.9):
                response = await self._send(claim)
            return AttemptOutcome(
                at=at,
                milliseconds=round((loop.time() - started) * 1_000),
                status_code=response.status,
                error=None if 200 <= response.status < 300 else f"status: The receiver responded {response.status}.",
                response=_readable(response.body[: self._settings.stored_response_bytes]),
                retry_after_seconds=retry_after_seconds(
                    response.headers.get("retry-after"), now=self._now() / 1_000, cap_seconds=RETRY_AFTER_CAP_SECONDS
                ),
            )
        except ReceiverUnreachable as unreachable:
            return failed(f"{unreachable.code}: {unreachable}")
        except TimeoutError:
            return failed("timeout: The attempt took longer than its lease.")
        except Exception as error:  # noqa: BLE001 - recorded, logged with its traceback, and tried again on the schedule
            structlog.get_logger().exception("delivery_attempt_failed", delivery=claim.deliveries[0].id)
            return failed(
                f"internal: The attempt failed within the service ({type(error).__name__}); its log has details."
            )

    async def _send(self, claim: DeliveryClaim) -> ReceiverResponse:
        oauth = claim.webhook.definition.oauth
        if oauth is None:
            return await self._post(claim, token=None)
        token = await self._tokens.token(oauth)
        response = await self._post(claim, token=token)
        if response.status == 401:  # the token may have expired early: try once with a new token
            self._tokens.forget(oauth, token)
            response = await self._post(claim, token=await self._tokens.token(oauth))
        return response

    async def _post(self, claim: DeliveryClaim, *, token: str | None) -> ReceiverResponse:
        message_id, body = self._message(claim)
        own_headers = [header for text in claim.webhook.definition.headers if (header := header_of(text))]
        if token is not None:
            own_headers = [(name, value) for name, value in own_headers if name.lower() != "authorization"]
            own_headers.append(("Authorization", f"Bearer {token}"))
        signed = signature_headers(message_id, body, seconds=self._now() // 1_000, secrets=claim.secrets)
        names = {name.lower() for name, _ in own_headers}
        agent = () if "user-agent" in names else (("User-Agent", f"workspaced/{__version__}"),)
        headers = (("Content-Type", "application/json"), *agent, *signed, *own_headers)
        return await self._client.post(claim.webhook.definition.url, headers=headers, body=body)

    def _message(self, claim: DeliveryClaim) -> tuple[str, bytes]:
        """Return the id and the body of the request. Each batch gets a new id, because a retry may have other events."""
        if not claim.is_batch:
            (single,) = claim.deliveries
            return single.event_id, single.body
        batch_id = f"bat_{secrets.token_hex(16)}"
        return batch_id, batch_of([one.body for one in claim.deliveries], batch_id=batch_id, now=self._now())


def _readable(body: bytes) -> str:
    """Return the body as text without U+0000, which PostgreSQL can't store."""
    return body.decode("utf-8", "replace").replace("\0", "�")
