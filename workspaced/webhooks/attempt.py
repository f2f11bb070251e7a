"""One attempt at one delivery: sign, send, judge (contract, H5, H9, H11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from workspaced import __version__
from workspaced.egress.client import EgressClient, Reply, Unreachable
from workspaced.webhooks.delivery_store import Claim, Outcome
from workspaced.webhooks.oauth import Tokens
from workspaced.webhooks.pace import Pace, retry_after_ms
from workspaced.webhooks.rules import header_of
from workspaced.webhooks.signing import signature_headers


class Attempts:
    """Makes attempts. ``now`` is milliseconds since 1970."""

    def __init__(self, client: EgressClient, *, pace: Pace, now: Callable[[], int]) -> None:
        self._client = client
        self._tokens = Tokens(client, now=now)
        self._pace = pace
        self._now = now

    async def make(self, claimed: Claim) -> Outcome:
        """Whatever happens is an outcome. It comes before the lease ends."""
        at = self._now()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        reply, error = None, None
        try:
            async with asyncio.timeout(self._pace.lease_seconds * 0.9):
                reply = await self._send(claimed)
        except Unreachable as unreachable:
            error = f"{unreachable.code}: {unreachable}"
        except TimeoutError:
            error = "timeout: The attempt took longer than its lease."
        milliseconds = round((loop.time() - begun) * 1_000)
        if reply is None:
            return Outcome(at=at, milliseconds=milliseconds, status_code=None, error=error)
        return Outcome(
            at=at,
            milliseconds=milliseconds,
            status_code=reply.status,
            error=None if 200 <= reply.status < 300 else f"status: The receiver answered {reply.status}.",
            answer=_readable(reply.body[: self._pace.kept_answer_bytes]),
            retry_after=retry_after_ms(reply.headers.get("retry-after"), now=self._now()),
        )

    async def _send(self, claimed: Claim) -> Reply:
        oauth = claimed.webhook.definition.oauth
        if oauth is None:
            return await self._post(claimed, token=None)
        reply = await self._post(claimed, token=await self._tokens.token(oauth))
        if reply.status == 401:  # the token may have ended early: once more with a new one
            self._tokens.forget(oauth)
            reply = await self._post(claimed, token=await self._tokens.token(oauth))
        return reply

    async def _post(self, claimed: Claim, *, token: str | None) -> Reply:
        own = [header for text in claimed.webhook.definition.headers if (header := header_of(text))]
        if token is not None:
            own = [(name, value) for name, value in own if name.lower() != "authorization"]
            own.append(("Authorization", f"Bearer {token}"))
        signed = signature_headers(
            claimed.event_id, claimed.body, seconds=self._now() // 1_000, secrets=claimed.secrets
        )
        named = {name.lower() for name, _ in own}
        agent = () if "user-agent" in named else (("User-Agent", f"workspaced/{__version__}"),)
        headers = (("Content-Type", "application/json"), *agent, *signed, *own)
        return await self._client.post(claimed.webhook.definition.url, headers=headers, body=claimed.body)


def _readable(body: bytes) -> str:
    """Text for the log; U+0000 is nothing that every database can hold."""
    return body.decode("utf-8", "replace").replace("\0", "�")
