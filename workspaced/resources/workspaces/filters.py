"""The query parameter ``filters`` of workspaces (contract W2). Performs no I/O."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from workspaced.core.json_body import decode
from workspaced.core.problems import Invalid
from workspaced.core.text import normalised
from workspaced.core.timestamps import microseconds

FILTERS: Final = """\
A part of the label, in any case; or a JSON object of conditions that all hold: `{"createdBy": "svc:ingest"}` or
`{"label": {"startsWith": "Rocket"}}`, with eq, ne, contains, startsWith, in, gt, gte, lt, lte.
"""
"""The description of the query parameter in the API description."""
FIELDS: Final[Mapping[str, str]] = {
    "id": "id",
    "label": "label",
    "createdBy": "created_by",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "rootBlock": "root_block",
}
"""The members that a filter and ``sortedBy`` can name, with their attributes."""

Filter: TypeAlias = Callable[[Mapping[str, str]], bool]
"""A function that gets the `FIELDS` of a workspace, and returns whether the workspace meets the conditions."""

_INSTANTS: Final = frozenset({"createdAt", "updatedAt"})

_ORDER: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte"})
"""The operators that compare date-times as instants, and not as text."""

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "ne": lambda value, wanted: value != wanted,
    "contains": lambda value, wanted: wanted in value,
    "startsWith": lambda value, wanted: value.startswith(wanted),
    "gt": lambda value, wanted: value > wanted,
    "gte": lambda value, wanted: value >= wanted,
    "lt": lambda value, wanted: value < wanted,
    "lte": lambda value, wanted: value <= wanted,
}


def read_filters(text: str | None) -> Filter:
    """Return the filter that a text describes; without a text, every workspace passes.

    Strings are compared by code point. Timestamps are compared with RFC 3339 date-times of any offset as instants.

    Raises:
        Invalid: the text is not JSON, names an unknown field or operator, or has a value that is not a string.
    """
    if not text:
        return lambda _fields: True
    if not text.startswith("{"):
        wanted = normalised(text).casefold()
        return lambda fields: wanted in fields["label"].casefold()
    conditions = decode(text.encode())
    if not isinstance(conditions, dict):
        raise Invalid("bad_filters", "filters must be a JSON object or a part of the label.")
    tests = [test for field, condition in conditions.items() for test in _tests(field, condition)]
    return lambda fields: all(test(fields) for test in tests)


def _tests(field: str, condition: object) -> list[Filter]:
    if field not in FIELDS:
        raise Invalid("bad_filters", f"filters has no field '{field}', only {', '.join(sorted(FIELDS))}.")
    if not isinstance(condition, dict):
        condition = {"eq": condition}
    return [_test(field, operator, wanted) for operator, wanted in condition.items()]


def _test(field: str, operator: str, wanted: object) -> Filter:
    if operator == "in":
        if not isinstance(wanted, list) or not all(isinstance(item, str) for item in wanted):
            raise Invalid("bad_filters", f"'in' of '{field}' needs a list of strings.")
        allowed = [_test(field, "eq", item) for item in wanted]
        return lambda fields: any(test(fields) for test in allowed)
    compare = _OPERATORS.get(operator)
    if compare is None:
        raise Invalid("bad_filters", f"filters has no operator '{operator}', only {', '.join(sorted(_OPERATORS))}, in.")
    if not isinstance(wanted, str):
        raise Invalid("bad_filters", f"'{operator}' of '{field}' needs a string.")
    value = normalised(wanted)
    if field in _INSTANTS and operator in _ORDER:
        with contextlib.suppress(ValueError):  # a part of a date-time is compared as text
            instant = microseconds(value)
            return lambda fields: compare(microseconds(fields[field]), instant)
    return lambda fields: compare(fields[field], value)
