"""The origins of values, as their writers state them (contract M12). Performs no I/O.

An origin is sent and stored once for many entries. Only the row differs between these entries, so an entry stores the
number of the origin and the row in one integer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeGuard

from pydantic import ValidatorFunctionWrapHandler

from ingestd.wire.origin import ROW_BITS
from workspaced.core.bodies import Body, Nested, body_schema
from workspaced.core.json_body import encode
from workspaced.core.json_schema import Schema, array
from workspaced.core.members import Info, Label, Member, Text, Whole, rejected
from workspaced.core.origin_phrase import origin_phrase
from workspaced.core.problems import Invalid

_LAST_ROW = 2**ROW_BITS - 1
_LINK = re.compile(r"https?://[!-~]+", re.ASCII)
_NAMED = 3
"""The maximum number of origins that the audit row of a request names."""


class ValueOrigin(NamedTuple):
    """The parts of an origin that many entries share. An empty part was not given."""

    source: str
    file: str = ""
    run: str = ""
    pipeline: str = ""
    link: str = ""

    @property
    def digest(self) -> str:
        """A short text that differs for different origins."""
        return hashlib.sha256(encode(self)).hexdigest()[:32]


StoredOrigins: TypeAlias = Mapping[int, ValueOrigin]
"""Origins by their numbers."""


def origin_number(number: int, row: int) -> int:
    """Return the integer that holds the number of an origin and the row; row 0: no row.

    ``number``: the number of the stored origin or, before the origin is stored, its position in the request.
    """
    return number << ROW_BITS | row


def split_origin(origin: int) -> tuple[int, int]:
    """Return the number of the origin, and the row. ``origin`` may be negative; see `is_of_value`."""
    return abs(origin) >> ROW_BITS, abs(origin) & _LAST_ROW


def is_of_value(origin: int | None) -> TypeGuard[int]:
    """Whether the last write of an entry had an origin.

    If it had no origin, ``origin`` is None, or the negative number of the last origin that was given (contract M12).
    """
    return origin is not None and origin > 0


def origin_text(origin: ValueOrigin | None, row: int | None = None) -> str:
    """Return the phrase about an origin; empty if there is no origin."""
    if origin is None:
        return ""
    return origin_phrase(source=origin.source, file=origin.file, row=row, pipeline=origin.pipeline)


def origins_text(origins: Sequence[ValueOrigin]) -> str:
    """Return a phrase about the origins of a request; empty if there are no origins."""
    named = dict.fromkeys(map(origin_text, origins))
    more = len(named) - _NAMED
    return "; ".join([*named][:_NAMED]) + (f"; and {more} more" if more > 0 else "")


class RowSteps(Member):
    """The row of the first entry, then each difference from the previous row. The value after reading is a list of rows."""

    def _check(self, value: Any, _info: Info) -> Any:
        steps = value
        if isinstance(value, list) and not _are_whole(value):  # 7.0 is a whole number, as in JSON Schema
            steps = [int(one) if type(one) is float and one.is_integer() else one for one in value]
        if not isinstance(steps, list) or (steps is not value and not _are_whole(steps)):
            raise rejected("wrong_type", "must be a list of whole numbers")
        rows = list(accumulate(steps))
        if rows and (min(rows) < 0 or max(rows) > _LAST_ROW):
            raise rejected("out_of_range", f"must give rows from 0 to {_LAST_ROW}")
        return rows

    def _form(self, limits: Any) -> Schema:
        step = {"type": "integer", "minimum": -_LAST_ROW, "maximum": _LAST_ROW}
        return array(step, least=1, most=limits.bulk_items)


def _are_whole(steps: list[Any]) -> bool:
    return {int}.issuperset(map(type, steps))


_Part: TypeAlias = Annotated[str | None, Label(longest="origin_length")]


class OriginBody(Body):
    """The members that the origin of one value and an origin in a bulk have in common."""

    source: Annotated[str, Label(longest="origin_length", description="The name of the source or program.")]
    file: _Part = None
    run: _Part = None
    pipeline: _Part = None
    link: Annotated[
        str | None,
        Text(
            longest="origin_link_length",
            pattern=_LINK,
            mistake=("bad_link", "must be an address that begins with http:// or https://"),
            description="A page about the origin.",
        ),
    ] = None

    def shared(self) -> ValueOrigin:
        """Return the origin without the parts that differ between entries."""
        return ValueOrigin(self.source, *(part or "" for part in (self.file, self.run, self.pipeline, self.link)))


class SingleOrigin(OriginBody):
    """The origin of one value."""

    row: Annotated[int | None, Whole(highest=_LAST_ROW, description="The row in the file; the first row is 1.")] = None


class BulkOrigin(OriginBody):
    """The origin of consecutive entries of a bulk."""

    count: Annotated[
        int,
        Whole(
            highest="bulk_items",
            description="The number of entries with this origin. They follow the entries of the previous origin.",
        ),
    ]
    row_steps: Annotated[
        list[int] | None,
        RowSteps(
            description="`count` numbers: the row of the first entry, then each difference from the previous row. 0: no row."
        ),
    ] = None


class OriginMember(Nested):
    """The origin of one value."""

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        del info
        return check(value)

    def _form(self, limits: Any) -> Schema:
        return body_schema(self.body, limits)


class OriginList(Nested):
    """The origins of the entries of a bulk, in their order."""

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        if not isinstance(value, list):
            raise rejected("wrong_type", "must be a list of origins")
        if len(value) > (most := info.context.limits.bulk_origins):
            raise rejected("too_many_items", f"may have {most} items at the most")
        return check(value)

    def _form(self, limits: Any) -> Schema:
        return array(body_schema(self.body, limits), most=limits.bulk_origins)


class Origins(Body):
    """The member of a bulk body with the origins of its entries."""

    origins: Annotated[Sequence[BulkOrigin], OriginList(body=BulkOrigin, is_list=True)] = ()


def entry_origins(origins: Sequence[BulkOrigin], entries: int) -> tuple[list[ValueOrigin], Iterable[int | None]]:
    """Return the different origins of a bulk, and the origin number of each entry in order; None: the entry has no origin.

    Raises:
        Invalid: the origins have more entries than the bulk, or an origin has more or fewer rows than its ``count``.
    """
    if not origins:
        return [], repeat(None, entries)
    for index, one in enumerate(origins):
        if one.row_steps is not None and len(one.row_steps) != one.count:
            raise Invalid.at(f"/origins/{index}/rowSteps", "out_of_range", f"There must be {one.count} rows.")
    counted = sum(one.count for one in origins)
    if counted > entries:
        raise Invalid.at("/origins", "out_of_range", f"The origins are for {counted} entries; there are {entries}.")
    shared = [one.shared() for one in origins]
    positions = {origin: position for position, origin in enumerate(dict.fromkeys(shared))}
    numbers = (_numbers(positions[origin], one) for origin, one in zip(shared, origins, strict=True))
    return list(positions), chain(*numbers, repeat(None, entries - counted))


def _numbers(position: int, one: BulkOrigin) -> Iterable[int]:
    base = origin_number(position, 0)
    if not one.row_steps:
        return repeat(base, one.count)
    return [base | row for row in one.row_steps] if base else one.row_steps
