"""PostgreSQL's values as the server prints them, without conversion to float, Decimal or date objects."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.types.string import TextLoader

_SHORT_ZONE = re.compile(r"([+-]\d\d)$")


class _Boolean(Loader):
    """``true`` and ``false``, as JSON and people write them."""

    def load(self, data: Buffer) -> str:
        return "true" if bytes(data) == b"t" else "false"


class _Timestamp(Loader):
    """ISO 8601: a T between date and time, minutes in the zone.

    Other values (infinity, BC) stay as they are.
    """

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        if text.endswith("BC") or "infinity" in text:
            return text
        return _SHORT_ZONE.sub(r"\1:00", text.replace(" ", "T", 1))


def prepare_session(connection: psycopg.Connection[Any], statement_timeout_seconds: float) -> None:
    """Make the session read-only, with a time limit and a fixed format of values."""
    milliseconds = max(1, round(statement_timeout_seconds * 1000))
    with connection.cursor() as cursor:
        for setting, value in {
            "statement_timeout": str(milliseconds),
            "default_transaction_read_only": "on",
            "timezone": "UTC",
            "datestyle": "ISO, YMD",
            "intervalstyle": "iso_8601",
            "extra_float_digits": "1",
            "bytea_output": "hex",
            "client_encoding": "UTF8",
        }.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (setting, value))
    connection.commit()


def prepare_cursor(cursor: psycopg.Cursor[Any]) -> None:
    """Fetch every type as text with this cursor. Other cursors of the connection are not affected."""
    for kind in cursor.connection.adapters.types:
        cursor.adapters.register_loader(kind.oid, TextLoader)
        if kind.array_oid:
            cursor.adapters.register_loader(kind.array_oid, TextLoader)
    cursor.adapters.register_loader("bool", _Boolean)
    cursor.adapters.register_loader("timestamp", _Timestamp)
    cursor.adapters.register_loader("timestamptz", _Timestamp)
