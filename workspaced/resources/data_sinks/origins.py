"""The origins of values: where a writer says that they come from (contract M12). Performs no I/O.

An origin is sent and stored once for many entries. Only the row differs between them, so an entry has both in one number.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import ValidatorFunctionWrapHandler

from ingestd.wire.origin import ROW_BITS
from workspaced.core.json_body import encode
from workspaced.core.json_schema import Schema, array
from workspaced.core.members import Body, Info, Label, Member, Nested, Text, Whole, body_schema, rejected
from workspaced.core.origin_phrase import origin_phrase
from workspaced.core.problems import Invalid

_LAST_ROW = 2**ROW_BITS - 1
_LINK = re.compile(r"https?://[!-~]+", re.ASCII)
_NAMED = 3
"""How many origins of a request its audit row names."""


class ValueOrigin(NamedTuple):
    """The parts of an origin that many entries share; empty: not given."""

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
    """Return the number that an entry has for its origin and the row; row 0: none.

    ``number`` is that of the stored origin or, before it is stored, its position in the request.
    """
    return number << ROW_BITS | row


def split_origin(origin: int) -> tuple[int, int]:
    """Return the number of an origin, and the row."""
    return origin >> ROW_BITS, origin & _LAST_ROW


def origin_text(origin: ValueOrigin, row: int = 0) -> str:
    """Return the phrase about an origin."""
    return origin_phrase(source=origin.source, file=origin.file, row=row, pipeline=origin.pipeline)


def text_of_origin(origin: int, origins: StoredOrigins) -> str:
    """Return the phrase about the origin of an entry."""
    number, row = split_origin(origin)
    return origin_text(origins[number], row)


def origins_text(origins: Sequence[ValueOrigin]) -> str:
    """Return a phrase about the origins of a request; empty without any."""
    named = dict.fromkeys(map(origin_text, origins))
    more = len(named) - _NAMED
    return "; ".join([*named][:_NAMED]) + (f"; and {more} more" if more > 0 else "")


class RowSteps(Member):
    """The rows of consecutive entries: that of the first, then each difference from the one before. Rows after reading."""

    def _check(self, value: Any, _info: Info) -> Any:
        steps = value
        if isinstance(value, list) and not {int}.issuperset(
            map(type, value)
        ):  # 7.0 is a whole number, as in JSON Schema
            steps = [int(one) if type(one) is float and one.is_integer() else one for one in value]
        if not isinstance(steps, list) or not {int}.issuperset(map(type, steps)):
            raise rejected("wrong_type", "must be a list of whole numbers")
        rows = list(accumulate(steps))
        if rows and (min(rows) < 0 or max(rows) > _LAST_ROW):
            raise rejected("out_of_range", f"must give rows from 0 to {_LAST_ROW}")
        return rows

    def _form(self, limits: Any) -> Schema:
        step = {"type": "integer", "minimum": -_LAST_ROW, "maximum": _LAST_ROW}
        return array(step, least=1, most=limits.bulk_items)


_Part: TypeAlias = Annotated[str | None, Label(longest="origin_length")]


class OriginBody(Body):
    """The members that an origin has everywhere."""

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
            description="A page about it.",
        ),
    ] = None

    def shared(self) -> ValueOrigin:
        """Return the origin without what differs by entry."""
        return ValueOrigin(self.source, *(part or "" for part in (self.file, self.run, self.pipeline, self.link)))


class SingleOrigin(OriginBody):
    """The origin of one value."""

    row: Annotated[int | None, Whole(highest=_LAST_ROW, description="In the file; the first is 1.")] = None


class BulkOrigin(OriginBody):
    """The origin of consecutive entries of a bulk."""

    count: Annotated[
        int,
        Whole(highest="bulk_items", description="The number of its entries, which follow those of the origin before."),
    ]
    row_steps: Annotated[
        list[int] | None,
        RowSteps(
            description="`count` numbers: the row of the first entry, then each difference from the row before. Row 0: none."
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


def entry_origins(origins: Sequence[BulkOrigin], entries: int) -> Iterable[int | None]:
    """Return the origin numbers of the entries of a bulk, in their order; None: not given.

    Raises:
        Invalid: there are more origins than entries, or not as many rows.
    """
    if not origins:
        return repeat(None, entries)
    for index, one in enumerate(origins):
        if one.row_steps is not None and len(one.row_steps) != one.count:
            raise Invalid.at(f"/origins/{index}/rowSteps", "out_of_range", f"There must be {one.count} rows.")
    counted = sum(one.count for one in origins)
    if counted > entries:
        raise Invalid.at("/origins", "out_of_range", f"The origins are for {counted} entries; there are {entries}.")
    numbers = (_numbers(index, one) for index, one in enumerate(origins))
    return chain(*numbers, repeat(None, entries - counted))


def _numbers(index: int, one: BulkOrigin) -> Iterable[int]:
    if not one.row_steps:
        return repeat(origin_number(index, 0), one.count)
    base = origin_number(index, 0)
    return [base | row for row in one.row_steps] if base else one.row_steps
