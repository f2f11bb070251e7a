"""The cursor of readings of changes: its members, and how it is moved back to an earlier time or number."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from connectors.database.changes.server_version import RowChangeNumber
from ingestd.sdk import Cursor, SourceBroken, parse_time

Token: TypeAlias = Mapping[str, Any]
"""The members of a cursor."""

VERSION = 1
_SHAPES = {
    "fingerprint": dict, "state": dict, "reading": str, "at": int | float, "swept": int | float, "whole": int | float,
    "backfill": dict,
}  # fmt: skip
"""The types of the cursor's members. If a member has another type, the table is read completely."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def new_reading() -> str:
    """Return a new id for a reading. The row index and the remembered state store the id of their reading."""
    return uuid.uuid4().hex[:16]


def digest(value: object) -> str:
    """Return a short hash of a JSON value."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=12).hexdigest()


def stored_token(cursor: Cursor | None) -> Token | None:
    """Return the members of a cursor; None if there is no cursor, or if the cursor has another version or shape."""
    if cursor is None or cursor.get("changes") != VERSION:
        return None
    is_known = all(isinstance(cursor[name], type_) for name, type_ in _SHAPES.items() if name in cursor)
    return dict(cursor) if is_known else None


def rewind_cursor(cursor: Cursor, to: str) -> Cursor:
    """Return the cursor moved back to ``to``, so that later rows are read again. A time without a zone is in UTC.

    Raises:
        SourceBroken: the cursor has no time or number, or ``to`` is not earlier than the cursor.
    """
    token: Token = cursor
    state: Mapping[str, Any] = token.get("state", {})
    bound = state.get("bound")
    if token.get("fingerprint", {}).get("method") == RowChangeNumber.__name__:
        raise SourceBroken("The cursor is a change number of Oracle, which has no time. Use 'ingestd cursor reset'.")
    if bound is None:
        raise SourceBroken("The cursor holds no time and no number, because changed rows are not found by a column.")
    earlier = _number(to, bound) if isinstance(bound, str) else _moment(to, int(bound))
    # With a new reading id, the connector does not use what it remembers of the last reading.
    return {**token, "reading": new_reading(), "state": {**state, "bound": earlier}}


def _moment(to: str, bound: int) -> int:
    try:
        moment = parse_time(to)
    except ValueError:
        raise SourceBroken(f"'{to}' is no time. Write it as 2026-11-01T00:00:00Z.") from None
    at = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    microseconds = at // timedelta(microseconds=1)
    if microseconds >= bound:
        reached = (_EPOCH + timedelta(microseconds=bound)).isoformat()
        raise SourceBroken(f"The cursor is at {reached}, which is not later than {to}.")
    return microseconds


def _number(to: str, bound: str) -> str:
    try:
        number = Decimal(to)
    except InvalidOperation:
        raise SourceBroken(f"'{to}' is no number; the cursor is at {bound}.") from None
    if not number.is_finite() or number >= Decimal(bound):
        raise SourceBroken(f"The cursor is at {bound}, which is not more than {to}.")
    return format(number, "f")
