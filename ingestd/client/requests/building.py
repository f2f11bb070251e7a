"""What the parts of requests are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET

from ingestd.wire import names

SortOrder: TypeAlias = Literal["ASC", "DESC"]


def members(**given: object) -> bytes:
    """A JSON object of the members that are given; they are named here as they are in it."""
    return msgspec.json.encode({name: value for name, value in given.items() if value is not UNSET})


def query(**given: str | int | bool | None) -> Mapping[str, str] | None:
    """The parameters that are given."""
    texts = {name: _text(value) for name, value in given.items() if value is not None}
    return texts or None


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def headers(
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
    prefer: str | None = None,
) -> Mapping[str, str]:
    """The headers that are given."""
    named = {
        "If-Match": if_match,
        "If-None-Match": if_none_match,
        names.IDEMPOTENCY_KEY: idempotency_key,
        names.CLIENT_ID: client_id,
        names.PREFER: prefer,
    }
    return {name: value for name, value in named.items() if value is not None}
