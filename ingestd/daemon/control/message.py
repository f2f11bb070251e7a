"""The JSON lines of the control socket. The status request is here because `ingestd status` imports few modules."""

from __future__ import annotations

import msgspec

VERSION = 1
"""Version of the protocol. A daemon that was started before an update may use an earlier version."""

LONGEST_LINE = 16 << 20
"""The maximum length of a line in bytes. A request that selects rejections by number may be long."""


class RequestMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The line of a request. ``zone``: the time zone for the sentences of the response; see `time_zone.zone_of`."""

    version: int
    request: msgspec.Raw
    zone: str = "UTC"


class ResponseMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The line of a response. ``refusal``: why the request was refused, or empty."""

    response: msgspec.Raw = msgspec.Raw(b"null")
    refusal: str = ""


class ReadStatus(msgspec.Struct, frozen=True, kw_only=True, tag="read_status"):
    """Read the status, as JSON or as lines; the response is `StatusText`."""

    as_json: bool


class StatusText(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `ingestd status`."""

    text: str
