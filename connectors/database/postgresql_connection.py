"""Connections to PostgreSQL: their parameters, and the error code of a refusal if its text is not known."""

from __future__ import annotations

import os
import re
import select
import time
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from connectors.database.options import DatabaseOptions
from connectors.database.postgresql_failure import connection_error
from ingestd.sdk.servers import FROM_ADDRESS

_CODE = re.compile(rb'\tErrorResponse\t.*? C "([0-9A-Z]{5})"')
_ENDED = (pq.PollingStatus.OK, pq.PollingStatus.FAILED)


def libpq_parameters(options: DatabaseOptions) -> dict[str, Any]:
    """Return the parameters of libpq for the address of ``options``."""
    address = options.address()
    given = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
        "dbname": address.database,
    }
    return {
        **({} if "service" in address.query else FROM_ADDRESS),
        "application_name": "ingestd",
        "connect_timeout": options.connect_timeout_seconds,
        # With these values, a server that has disappeared is detected within a minute.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
        **{name: value for name, value in given.items() if value},
        **address.query,
        "client_encoding": "UTF8",
    }


def connect(options: DatabaseOptions, *, finds_code: bool) -> psycopg.Connection[Any]:
    """Return a connection. ``finds_code``: if the text of a refusal is not known, log in once more to find the error code.

    Raises:
        SourceUnavailable: the database is not reachable now.
        SourceBroken: the server refuses the connection.
    """
    parameters = libpq_parameters(options)
    try:
        return psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        seconds = options.connect_timeout_seconds
        find_code = (lambda: code_of_refusal(parameters, seconds)) if finds_code else str
        raise connection_error(options, error, find_code) from None  # the error may show the address


def code_of_refusal(parameters: dict[str, Any], seconds: float) -> str:
    """Log in once more, and return the SQLSTATE of the refusal; empty if the server sends no code within ``seconds``.

    libpq reports a failed connection only as text in the server's language. The server also sends the code, which is in
    libpq's trace. The trace has the password, so it is written to memory and never to a disk.
    """
    if not hasattr(os, "memfd_create"):
        return ""  # the system has no private memory for the trace
    trace = os.memfd_create("ingestd-login")
    try:
        connection = pq.PGconn.connect_start(make_conninfo(**parameters).encode())
        try:
            connection.trace(trace)
            until = time.monotonic() + seconds
            while (status := connection.connect_poll()) not in _ENDED:
                poll = select.poll()
                poll.register(
                    connection.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT
                )
                if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                    break
            connection.untrace()
        finally:
            connection.finish()
        found = _CODE.search(os.pread(trace, os.fstat(trace).st_size, 0))
    except (psycopg.Error, OSError):
        return ""  # the caller uses the text of the first attempt
    finally:
        os.close(trace)
    return found.group(1).decode() if found is not None else ""
