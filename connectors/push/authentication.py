"""Proof of a client's identity: a bearer token, or a signature as Standard Webhooks 1.0 specifies it.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from connectors.push.options import BearerToken, PushAuth

_PREFIXES = ("webhook", "svix")
"""Svix, from which Standard Webhooks comes, has its own names for the same headers."""
_PARTS = ("id", "timestamp", "signature")
SIGNATURE_HEADERS = frozenset(f"{prefix}-{part}" for prefix in _PREFIXES for part in _PARTS)
_MAX_SIGNATURES = 10
_MAX_ID = 256


class Denied(Exception):
    """The request does not prove its identity. The sentence is for the client and contains no secret."""


def check_headers(auth: PushAuth, headers: Mapping[str, str], now: float) -> None:
    """Check what the headers prove, before the body is read.

    ``headers``: by name in lower case. ``now``: seconds since the epoch.

    Raises:
        Denied: the token is wrong, or the time of the signature is not the present.
    """
    if isinstance(auth, BearerToken):
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Digests of equal length: the time of the comparison shows nothing about the token.
        known = hashlib.sha256(auth.token.get_secret_value().encode()).digest()
        is_same = hmac.compare_digest(hashlib.sha256(token.strip().encode("latin-1")).digest(), known)
        if scheme.lower() != "bearer" or not is_same:
            raise Denied("The request needs the header Authorization with the right bearer token.")
        return
    prefix = _prefix(headers)
    missing = [name for part in _PARTS if not headers.get(name := f"{prefix}-{part}")]
    if missing:
        raise Denied(f"The request needs the header {missing[0]}, as Standard Webhooks says.")
    timestamp = headers[f"{prefix}-timestamp"]
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 15):
        raise Denied(f"The header {prefix}-timestamp must be a number of seconds since 1970.")
    if abs(now - int(timestamp)) > auth.tolerance_seconds:
        raise Denied(f"The time of {prefix}-timestamp is too far from the present; check both clocks, and sign again.")


def check_body(auth: PushAuth, headers: Mapping[str, str], body: bytes) -> None:
    """Check the signature of the body, after `check_headers`.

    Raises:
        Denied: no signature is by a known secret.
    """
    if isinstance(auth, BearerToken):
        return
    prefix = _prefix(headers)
    signed = f"{headers[f'{prefix}-id']}.{headers[f'{prefix}-timestamp']}.".encode("latin-1") + body
    given = [
        one.removeprefix("v1,").encode("latin-1")
        for one in headers[f"{prefix}-signature"].split(" ")[:_MAX_SIGNATURES]
        if one.startswith("v1,")
    ]
    is_valid = False
    for key in auth.keys:
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for one in given:  # all are compared, so that the time does not show which one fits
            is_valid |= hmac.compare_digest(expected, one)
    if not is_valid:
        raise Denied(f"No signature of {prefix}-signature fits the body and the secret.")


def message_id(headers: Mapping[str, str]) -> str:
    """Return the id of the message, which is the same in each repetition; empty if the client sends none.

    Raises:
        Denied: it is too long.
    """
    found = headers.get(f"{_prefix(headers)}-id") or headers.get("idempotency-key") or ""
    if len(found) > _MAX_ID:
        raise Denied(f"The id of the message has more than {_MAX_ID} characters.")
    return found


def _prefix(headers: Mapping[str, str]) -> str:
    """Return with what the names of the headers begin: all of one request have the same prefix."""
    return next((one for one in _PREFIXES if f"{one}-signature" in headers or f"{one}-id" in headers), _PREFIXES[0])
