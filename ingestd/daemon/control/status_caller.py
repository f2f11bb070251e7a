"""Requests the status of the running daemon, without the configuration and the packages that read a state file."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.message import (
    LONGEST_LINE,
    VERSION,
    ReadStatus,
    RequestMessage,
    ResponseMessage,
    StatusText,
)
from ingestd.daemon.control.time_zone import used_zone

_SECONDS = 5.0
"""Time limit of each step of the call."""


def call_for_status(state: Path, *, as_json: bool) -> str | None:
    """Return the output of `ingestd status` from the daemon that holds a state file.

    Return None if no daemon runs or responds: the status must then be read from the state file.
    """
    request = msgspec.Raw(msgspec.json.encode(ReadStatus(as_json=as_json)))
    line = msgspec.json.encode(RequestMessage(version=VERSION, request=request, zone=used_zone())) + b"\n"
    try:
        with short_address(socket_file(state)) as address, socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_SECONDS)
            sock.connect(address)
            sock.sendall(line)
            with sock.makefile("rb") as stream:
                received = stream.readline(LONGEST_LINE)
        found = msgspec.json.decode(received, type=ResponseMessage)
        return None if found.refusal else msgspec.json.decode(found.response, type=StatusText).text
    except (OSError, msgspec.DecodeError):
        return None
