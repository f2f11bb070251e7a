"""Requests to a push source, signed according to Standard Webhooks or with a token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import socket
import time

TOKEN = "a-token-of-the-tests-1234"
KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def free_address() -> str:
    """Return an address of this machine that no program is using.

    Its port is below the range that the kernel assigns to clients. A client that repeatedly connects to a free port of that
    range would at some time connect to itself.
    """
    for port in random.sample(range(20_000, 30_000), 100):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return f"127.0.0.1:{port}"
    raise AssertionError("100 ports of this machine are in use")


def bearer(identity: str = "") -> dict[str, str]:
    """Return the headers of a request with the token."""
    return {"Authorization": f"Bearer {TOKEN}", **({"webhook-id": identity} if identity else {})}


def signed(body: bytes, identity: str, *, at: float | None = None, key: bytes = KEY) -> dict[str, str]:
    """Return the headers of a signed request. ``at``: its time in seconds since the epoch; None: now."""
    stamp = int(time.time() if at is None else at)
    digest = hmac.new(key, f"{identity}.{stamp}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": identity, "webhook-timestamp": str(stamp), "webhook-signature": f"v1a,AAAA {signature}"}
