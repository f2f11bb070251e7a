"""The parameters of connections to PostgreSQL."""

from __future__ import annotations

from typing import Any

from connectors.database.address import Address
from connectors.database.options import DatabaseOptions


def libpq_parameters(address: Address, *, connect_timeout: int) -> dict[str, Any]:
    """Return the parameters of libpq for an address. ``connect_timeout``: seconds."""
    given = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
        "dbname": address.database,
    }
    return {
        "application_name": "ingestd",
        "connect_timeout": connect_timeout,
        # A server that disappeared is detected within a minute.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
        **{name: value for name, value in given.items() if value},
        **address.query,
        "client_encoding": "UTF8",
    }


def session_parameters(options: DatabaseOptions) -> dict[str, Any]:
    """Return the parameters of `psycopg.connect` for a reading."""
    parameters = libpq_parameters(options.address(), connect_timeout=options.connect_timeout_seconds)
    return parameters | {"autocommit": True, "prepare_threshold": None}
