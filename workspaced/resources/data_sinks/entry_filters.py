"""Filters of entries: key prefix, data type, author, update time and numeric value. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.core.json_schema import STRING, TIMESTAMP, string
from workspaced.core.problems import Invalid
from workspaced.core.sort_keys import NUMBER, NUMBER_CHARACTERS, number_of
from workspaced.core.text import normalised
from workspaced.core.timestamps import microseconds
from workspaced.http.description import Parameter
from workspaced.settings.model import Limits

_ALWAYS: Final = 2**62
# A text that sorts after every key. It repeats the last code point more often than a key can, because an index of PostgreSQL
# limits the length of keys.
AFTER_EVERY_KEY: Final = "\U0010ffff" * 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilters:
    """The filters of a query. Empty ``prefix`` or None: no filter. Instants are milliseconds since 1970, ``until`` excluded."""

    prefix: str = ""
    data_type: str | None = None
    author: str | None = None
    since: int | None = None
    until: int | None = None
    least: float | None = None
    most: float | None = None

    @property
    def given(self) -> bool:
        """Return whether there is a filter."""
        return self != EntryFilters()

    @property
    def low(self) -> str:
        """Return a text that sorts before all keys with the prefix, and after all smaller keys."""
        return before_prefix(self.prefix) if self.prefix else ""

    @property
    def high(self) -> str:
        """Return a text that sorts after all keys with the prefix, and before all larger keys."""
        return self.prefix + AFTER_EVERY_KEY

    @property
    def values(self) -> dict[str, object]:
        """Return the parameters that the filters set in the statements of `entry_pages`."""
        return {
            "low": self.low,
            "high": self.high,
            "data_type": self.data_type,
            "author": self.author,
            "since": -_ALWAYS if self.since is None else self.since,
            "until": _ALWAYS if self.until is None else self.until,
            "ranged": int(self.least is not None or self.most is not None),
            "least": float("-inf") if self.least is None else self.least,
            "most": float("inf") if self.most is None else self.most,
        }


def filter_parameters(limits: Limits) -> tuple[Parameter, ...]:
    """Return the query parameters for the API description."""
    number = string(pattern=f"^{NUMBER.pattern}$", longest=NUMBER_CHARACTERS)
    return (
        Parameter("prefix", "Only entries with a key that begins with this.", string(longest=limits.key_length)),
        Parameter("dataType", "Only entries of this data type.", STRING),
        Parameter("updatedBy", "Only entries that this actor wrote last.", STRING),
        Parameter("updatedFrom", "Only entries that were updated at this instant or later.", TIMESTAMP),
        Parameter("updatedUntil", "Only entries that were updated before this instant.", TIMESTAMP),
        Parameter("valueFrom", "Only entries with a value that is a number and at least this number.", number),
        Parameter("valueUntil", "Only entries with a value that is a number and at most this number.", number),
    )


def before_prefix(prefix: str) -> str:
    """Return a text that sorts directly before every key with this prefix."""
    last = ord(prefix[-1])
    if last <= 1:
        return prefix[:-1]
    before = 0xD7FF if last == 0xE000 else last - 1  # the code points between are surrogates
    return prefix[:-1] + chr(before) + AFTER_EVERY_KEY


def read_filters(query: Mapping[str, str], limits: Limits) -> EntryFilters:
    """Return the filters of a query. An empty ``prefix``, ``dataType`` or ``updatedBy`` is no filter.

    Raises:
        Invalid: a filter is malformed or too long.
    """
    prefix = normalised(query.get("prefix", ""))
    if len(prefix) > limits.key_length:
        raise Invalid("too_long", f"prefix may have {limits.key_length} characters at the most.")
    return EntryFilters(
        prefix=prefix,
        data_type=query.get("dataType") or None,
        author=query.get("updatedBy") or None,
        since=_instant(query, "updatedFrom"),
        until=_instant(query, "updatedUntil"),
        least=_number(query, "valueFrom"),
        most=_number(query, "valueUntil"),
    )


def _instant(query: Mapping[str, str], name: str) -> int | None:
    """Return milliseconds since 1970, rounded up, because the times of entries are whole milliseconds."""
    text = query.get(name)
    if text is None:
        return None
    try:
        return -(-microseconds(text) // 1_000)
    except ValueError as error:
        raise Invalid(f"bad_{_snake(name)}", f"{name} must be an RFC 3339 date-time with an offset.") from error


def _number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    number = number_of(text)
    if number is None:
        raise Invalid(f"bad_{_snake(name)}", f"{name} must be a number, such as 12.5 or 1e-3.")
    return number


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
