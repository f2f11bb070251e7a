"""The code of a login that PostgreSQL refuses in words that are not known, such as those of another language.

libpq reports a failed connection in words only, and the server's language decides about them. The protocol has the code. A second
attempt with libpq's trace in memory shows it. The trace holds the password, so it is on no disk.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

_CODE = re.compile(rb'\tErrorResponse\t.*? C "([0-9A-Z]{5})"')
_ENDED = (pq.PollingStatus.OK, pq.PollingStatus.FAILED)


def code_of_refusal(parameters: Mapping[str, Any], seconds: float) -> str:
    """Log in once more, and return the SQLSTATE with which the server refuses that; empty if it sends none in ``seconds``."""
    if not hasattr(os, "memfd_create"):
        return ""  # there is no private memory for the trace
    trace = os.memfd_create("ingestd-login")
    try:
        connection = pq.PGconn.connect_start(make_conninfo(**parameters).encode())
        try:
            connection.trace(trace)
            _connect(connection, time.monotonic() + seconds)
            connection.untrace()
        finally:
            connection.finish()
        found = _CODE.search(os.pread(trace, os.fstat(trace).st_size, 0))
    except (psycopg.Error, OSError):
        return ""  # the words of the first attempt remain
    finally:
        os.close(trace)
    return found.group(1).decode() if found is not None else ""


def _connect(connection: pq.abc.PGconn, until: float) -> None:
    while (status := connection.connect_poll()) not in _ENDED:
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            return
