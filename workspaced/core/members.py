"""The members of request bodies: annotations of the fields of models, see `workspaced.core.bodies`.

A `Member` validates the values of a field, and returns their JSON Schema. Example:
``label: Annotated[str, Label(longest="label_length")]``. Null means the default; required members, and members that are not
``nullable``, can't be null. A bound is a number, or the name of a limit in the settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from msgspec import UNSET
from pydantic import (
    GetCoreSchemaHandler,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from workspaced.core.json_body import is_deeper
from workspaced.core.json_schema import (
    FLAG,
    NOT_BLANK,
    OBJECT,
    ONE_LINE,
    UUID,
    Schema,
    array,
    choice,
    described,
    string,
)
from workspaced.core.text import as_uuid, has_controls, normalised

Bound: TypeAlias = int | str

# Floating-point numbers of every language have this range, and 64 digits are enough for any measured quantity.
_LARGEST: Final = Decimal("1e300")
_DIGITS: Final = 64


class Context(NamedTuple):
    """What a validation needs in addition to the body. ``now`` is milliseconds since 1970."""

    limits: Any
    now: int


Info: TypeAlias = ValidationInfo[Context]


def rejected(code: str, *musts: str) -> PydanticCustomError:
    """Return the error of a member. Each of ``musts`` is the end of a sentence that begins with the member's name."""
    return PydanticCustomError(code, "rejected", {"musts": musts})


def string_of(value: Any) -> str:
    """Return the value. Raises PydanticCustomError: the value is not a string."""
    if not isinstance(value, str):
        raise rejected("wrong_type", "must be a string")
    return value


def bound(limits: Any, given: Bound) -> int:
    """Return the value of a bound."""
    return given if isinstance(given, int) else int(getattr(limits, given))


@dataclass(frozen=True, kw_only=True)
class Member:
    """The kind of a field. A subclass has ``_check``, and ``form`` or (if the schema depends on limits) ``_form``."""

    description: str = ""
    nullable: bool = True

    what: ClassVar[str] = "a string"
    """The end of the sentence "is required and must be …"."""
    form: ClassVar[Schema] = {}

    def read(self, value: Any, info: Info) -> Any:
        """Return the checked value; UNSET stays. Raises PydanticCustomError: the value is invalid, or is itself this error."""
        if isinstance(value, PydanticCustomError):
            raise value
        return value if value is UNSET else self._check(value, info)

    def absent(self, *, null: bool) -> tuple[str, str]:
        """Return code and sentence of the error of an absent member. ``null``: the member may be absent, but is null."""
        return ("wrong_type", "can't be null") if null else ("required", f"is required and must be {self.what}")

    def schema(self, limits: Any) -> Schema:
        """Return the schema of a value that is not null."""
        return described(self._form(limits), self.description)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self.read)

    def _check(self, value: Any, info: Info) -> Any:
        raise NotImplementedError

    def _form(self, _limits: Any) -> Schema:
        return self.form


@dataclass(frozen=True, kw_only=True)
class Text(Member):
    """A string of at most ``longest`` code points, normalised to NFC unless ``exact``. ``one_line``: no control characters.

    ``mistake``: the code and the sentence of the error if the whole string does not match ``pattern``.
    """

    longest: Bound
    exact: bool = False
    one_line: bool = False
    trimmed: bool = False
    pattern: re.Pattern[str] | None = None
    mistake: tuple[str, str] = ("", "")

    slack: ClassVar[int] = 0
    """The string may have this many characters more than ``longest`` before it is trimmed."""

    def _check(self, value: Any, info: Info) -> Any:
        text = string_of(value) if self.exact else normalised(string_of(value))
        if len(text) > (longest := bound(info.context.limits, self.longest) + self.slack):
            raise rejected("too_long", f"may have {longest} characters at the most")
        if self.one_line and has_controls(text):
            raise rejected("control_character", "may not hold control characters")
        if self.pattern and not self.pattern.fullmatch(text):
            raise rejected(*self.mistake)
        return text.strip() if self.trimmed else text

    def _form(self, limits: Any) -> Schema:
        pattern = f"^{self.pattern.pattern}$" if self.pattern else ONE_LINE if self.one_line else None
        return string(longest=bound(limits, self.longest), pattern=pattern)


@dataclass(frozen=True, kw_only=True)
class Label(Text):
    """A name for people: one line, trimmed, not blank."""

    one_line: bool = True
    trimmed: bool = True
    slack = 1_000

    def _check(self, value: Any, info: Info) -> Any:
        text, longest = super()._check(value, info), bound(info.context.limits, self.longest)
        if text == "":
            raise rejected("blank", "can't be blank")
        if len(text) > longest:
            raise rejected("too_long", f"may have {longest} characters at the most")
        return text

    def _form(self, limits: Any) -> Schema:
        return string(shortest=1, longest=bound(limits, self.longest), pattern=NOT_BLANK)


@dataclass(frozen=True, kw_only=True)
class Word(Text):
    """One of the strings ``words``. ``mistake``: the code and the sentence of the error for any other string."""

    words: tuple[str, ...]

    def _check(self, value: Any, info: Info) -> Any:
        text = super()._check(value, info)
        if text not in self.words:
            raise rejected(*self.mistake)
        return text

    def _form(self, _limits: Any) -> Schema:
        return choice(*self.words)


class Identifier(Member):
    """A UUID. The checked value is in lower case."""

    what = "a UUID"
    form = UUID

    def _check(self, value: Any, _info: Info) -> Any:
        found = as_uuid(value) if isinstance(value, str) else None
        if found is None:
            raise rejected("not_a_uuid", "must be a UUID")
        return found


class Flag(Member):
    """A boolean."""

    form = FLAG

    def _check(self, value: Any, _info: Info) -> Any:
        if not isinstance(value, bool):
            raise rejected("wrong_type", "must be true or false")
        return value


@dataclass(frozen=True, kw_only=True)
class JsonObject(Member):
    """Any JSON object that is nested at most ``deepest`` levels deep."""

    deepest: Bound

    def _check(self, value: Any, info: Info) -> Any:
        if not isinstance(value, dict):
            raise rejected("wrong_type", "must be a JSON object")
        if is_deeper(value, deepest := bound(info.context.limits, self.deepest)):
            raise rejected("too_deep", f"may be nested {deepest} levels deep at the most")
        return value

    def _form(self, limits: Any) -> Schema:
        return described(OBJECT, f"Nested {bound(limits, self.deepest)} levels deep at the most.")


@dataclass(frozen=True, kw_only=True)
class Number(Member):
    """A finite number, which keeps its digits."""

    lowest: int | None = None

    def _check(self, value: Any, _info: Info) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise rejected("wrong_type", "must be a number")
        if not -_LARGEST <= value <= _LARGEST or len(str(value)) > _DIGITS:
            raise rejected("out_of_range", f"may have {_DIGITS} digits at the most, and be no larger than 1e300")
        if self.lowest is not None and value < self.lowest:
            raise rejected("out_of_range", f"must be at least {self.lowest:g}")
        return value

    def _form(self, _limits: Any) -> Schema:
        return {"type": "number", "minimum": -1e300 if self.lowest is None else self.lowest, "maximum": 1e300}


@dataclass(frozen=True, kw_only=True)
class Whole(Number):
    """A whole number from ``lowest`` (0 by default) to ``highest``. 7.0 is a whole number, too, as in JSON Schema."""

    highest: Bound

    def _check(self, value: Any, info: Info) -> Any:
        number, highest = super()._check(value, info), bound(info.context.limits, self.highest)
        if number != int(number) or not 0 <= number <= highest:
            raise rejected("out_of_range", f"must be a whole number from 0 to {highest}")
        return int(number)

    def _form(self, limits: Any) -> Schema:
        return {"type": "integer", "minimum": self.lowest or 0, "maximum": bound(limits, self.highest)}


@dataclass(frozen=True, kw_only=True)
class Strings(Member):
    """A list of strings. A single string means a list of one item. ``distinct``: repetitions are removed.

    ``item``: the schema of an item; by default, the schema has only the maximum length.
    """

    most: Bound
    longest: Bound
    distinct: bool = True
    exact: bool = False
    item: Schema | None = None

    items: ClassVar[tuple[str, str]] = ("strings", "strings")
    """What the items are called in the errors "wrong type" and "too long"."""

    def _check(self, value: Any, info: Info) -> Any:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise rejected("wrong_type", f"must be a list of {self.items[0]}")
        most, longest = bound(info.context.limits, self.most), bound(info.context.limits, self.longest)
        if len(items) > most or any(len(item) > longest for item in items):
            raise rejected("too_long", f"may have {most} {self.items[1]} of {longest} characters at the most")
        texts = items if self.exact else map(normalised, items)
        return tuple(dict.fromkeys(texts) if self.distinct else texts)

    def _form(self, limits: Any) -> Schema:
        item = self.item or string(longest=bound(limits, self.longest))
        return {"anyOf": [array(item, most=bound(limits, self.most)), item]}
