"""Converts the header lines of a request to one value for each name (RFC 9110, 5.2 and 5.3). Performs no I/O.

If a proxy and a server use different lines of a repeated header, they see different requests: another caller, another length,
or another client address. So all servers of this project handle repeated lines in the same way, by `SINGLE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SINGLE: Final = frozenset(
    {
        b"authorization",
        b"clientid",
        b"content-disposition",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"if-range",
        b"last-event-id",
        b"origin",
        b"range",
        b"sec-fetch-site",
        b"svix-id",
        b"svix-signature",
        b"svix-timestamp",
        b"traceparent",
        b"transfer-encoding",
        b"webhook-id",
        b"webhook-signature",
        b"webhook-timestamp",
        b"x-api-key",
        b"x-form-token",
        b"x-request-id",
        b"x-writer",
    }
)
"""Headers that must have one line: a second line makes the request malformed. The lines of all other headers are joined."""

HOST: Final = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Za-z:.%]+\])(?::[0-9]*)?")
"""The form of a header Host: a name or an address, and perhaps a port. The header may be empty (RFC 9112, 3.2)."""

_SEPARATORS: Final = {b"cookie": b"; "}


class RepeatedHeader(ValueError):
    """A header of `SINGLE` has several lines. The message is for the client."""


def single_values(lines: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the value of each header, by its name in lower case. ``lines``: names in lower case, and values.

    Raises:
        RepeatedHeader: a header of `SINGLE` occurs twice.
    """
    values: dict[bytes, bytes] = {}
    for name, value in lines:
        before = values.get(name)
        if before is None:
            values[name] = value
        elif name in SINGLE:
            raise RepeatedHeader(f"The header {name.decode('ascii', 'replace')} must have one line only.")
        else:
            values[name] = before + _SEPARATORS.get(name, b", ") + value
    return values
