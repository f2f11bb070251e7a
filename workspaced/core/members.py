"""The members of request bodies: a `Member` validates values and generates their JSON Schema.

A body is a data class that annotates its fields with members: ``label: Annotated[str, Label("label_length")]``. A field
without a default is required. Null means the default, unless the member is required or not ``nullable``. A bound is a number,
or the name of a limit in the settings. An absent value is `msgspec.UNSET`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar, get_type_hints

from msgspec import UNSET, UnsetType

from workspaced.core.fields import Fields
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
    nullable,
    string,
)
from workspaced.core.text import as_uuid, has_controls, normalised

Bound: TypeAlias = int | str
T = TypeVar("T")

# Floating point of every language has this range, and 64 digits are enough for any measured quantity.
_LARGEST: Final = Decimal("1e300")
_DIGITS: Final = 64


def bound(limits: Any, given: Bound) -> int:
    """Return the value of a bound."""
    value: int = given if isinstance(given, int) else getattr(limits, given)
    return value


class Slot(NamedTuple):
    """The place of a member: its object, its name in the object, and the limits in force."""

    fields: Fields
    name: str
    limits: Any

    def reject(self, code: str, must: str) -> UnsetType:
        """Add a mistake; ``must`` completes a sentence about the member. Returns UNSET."""
        self.fields.mistake(self.name, code, must)
        return UNSET


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a request body. ``name``: its name in JSON; by default the field's in camel case.

    A subclass implements ``_check``, which returns the checked value, or UNSET after adding a mistake, and either
    ``_form``, the schema by the limits, or ``form``, a schema without limits.
    """

    description: str = ""
    name: str = ""
    nullable: bool = True

    what: ClassVar[str] = "a string"
    """The end of the sentence "is required and must be …"."""
    form: ClassVar[Schema] = {}

    def read(self, slot: Slot, value: Any) -> Any:
        """Return the checked value of a member that is neither absent nor null; UNSET after adding a mistake."""
        return self._check(slot, value)

    def reject_null(self, slot: Slot, *, required: bool) -> None:
        """Add the mistake that the member is null, or absent although it is ``required``."""
        if required:
            slot.reject("required", f"is required and must be {self.what}")
        else:
            slot.reject("wrong_type", "can't be null")

    def schema(self, limits: Any) -> Schema:
        """Return the schema of a value that is not null."""
        return described(self._form(limits), self.description)

    def _check(self, slot: Slot, value: Any) -> Any:
        raise NotImplementedError

    def _form(self, _limits: Any) -> Schema:
        return self.form


@dataclass(frozen=True, kw_only=True)
class Text(Member):
    """A string of ``longest`` code points at most, in NFC unless ``exact``. ``one_line``: no controls.

    ``mistake``: the code and the sentence for a string that does not match ``pattern`` as a whole.
    """

    longest: Bound
    exact: bool = False
    one_line: bool = False
    trimmed: bool = False
    pattern: re.Pattern[str] | None = None
    mistake: tuple[str, str] = ("", "")

    def _check(self, slot: Slot, value: Any) -> Any:
        if not isinstance(value, str):
            return slot.reject("wrong_type", "must be a string")
        text = value if self.exact else normalised(value)
        if len(text) > (longest := bound(slot.limits, self.longest)):
            return slot.reject("too_long", f"may have {longest} characters at the most")
        if self.one_line and has_controls(text):
            return slot.reject("control_character", "may not hold control characters")
        if self.pattern and not self.pattern.fullmatch(text):
            return slot.reject(*self.mistake)
        return text.strip() if self.trimmed else text

    def _form(self, limits: Any) -> Schema:
        pattern = f"^{self.pattern.pattern}$" if self.pattern else ONE_LINE if self.one_line else None
        return string(longest=bound(limits, self.longest), pattern=pattern)


class Label(Text):
    """A name for people: one line, trimmed, not blank."""

    def _check(self, slot: Slot, value: Any) -> Any:
        longest = bound(slot.limits, self.longest)
        text = Text(longest=longest + 1_000, one_line=True, trimmed=True).read(slot, value)
        if text == "":
            slot.reject("blank", "can't be blank")
        if isinstance(text, str) and len(text) > longest:
            slot.reject("too_long", f"may have {longest} characters at the most")
        return text

    def _form(self, limits: Any) -> Schema:
        return string(shortest=1, longest=bound(limits, self.longest), pattern=NOT_BLANK)


@dataclass(frozen=True, kw_only=True)
class Word(Text):
    """One of the strings ``words``. ``mistake``: the code and the sentence for any other."""

    words: tuple[str, ...]

    def _check(self, slot: Slot, value: Any) -> Any:
        text = super()._check(slot, value)
        return slot.reject(*self.mistake) if isinstance(text, str) and text not in self.words else text

    def _form(self, _limits: Any) -> Schema:
        return choice(*self.words)


class Identifier(Member):
    """A UUID, in lower case after reading."""

    what = "a UUID"
    form = UUID

    def _check(self, slot: Slot, value: Any) -> Any:
        found = as_uuid(value) if isinstance(value, str) else None
        return found or slot.reject("not_a_uuid", "must be a UUID")


class Flag(Member):
    """A boolean."""

    form = FLAG

    def _check(self, slot: Slot, value: Any) -> Any:
        return value if isinstance(value, bool) else slot.reject("wrong_type", "must be true or false")


class JsonObject(Member):
    """Any JSON object."""

    form = OBJECT

    def _check(self, slot: Slot, value: Any) -> Any:
        return value if isinstance(value, dict) else slot.reject("wrong_type", "must be a JSON object")


@dataclass(frozen=True, kw_only=True)
class Number(Member):
    """A finite number; it keeps its digits."""

    lowest: int | None = None

    def _check(self, slot: Slot, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return slot.reject("wrong_type", "must be a number")
        if not -_LARGEST <= value <= _LARGEST or len(str(value)) > _DIGITS:
            return slot.reject("out_of_range", f"may have {_DIGITS} digits at the most, and be no larger than 1e300")
        if self.lowest is not None and value < self.lowest:
            return slot.reject("out_of_range", f"must be at least {self.lowest:g}")
        return value

    def _form(self, _limits: Any) -> Schema:
        return {"type": "number", "minimum": -1e300 if self.lowest is None else self.lowest, "maximum": 1e300}


@dataclass(frozen=True, kw_only=True)
class Whole(Member):
    """A whole number from 0 to ``highest``, which may have the form 7.0, as in JSON Schema."""

    highest: Bound

    def _check(self, slot: Slot, value: Any) -> Any:
        number, highest = Number().read(slot, value), bound(slot.limits, self.highest)
        if number is UNSET:
            return UNSET
        if number != int(number) or not 0 <= number <= highest:
            return slot.reject("out_of_range", f"must be a whole number from 0 to {highest}")
        return int(number)

    def _form(self, limits: Any) -> Schema:
        return {"type": "integer", "minimum": 0, "maximum": bound(limits, self.highest)}


@dataclass(frozen=True, kw_only=True)
class Strings(Member):
    """A list of strings, without repetitions if ``distinct``; a single string means a list of one.

    ``item``: the schema of an item; by default it has only the length.
    """

    most: Bound
    longest: Bound
    distinct: bool = True
    exact: bool = False
    item: Schema | None = None

    items: ClassVar[tuple[str, str]] = ("strings", "strings")
    """The names of the items in the sentences about a wrong type and about a wrong number."""

    def _check(self, slot: Slot, value: Any) -> Any:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            return slot.reject("wrong_type", f"must be a list of {self.items[0]}")
        most, longest = bound(slot.limits, self.most), bound(slot.limits, self.longest)
        if len(items) > most or any(len(item) > longest for item in items):
            return slot.reject("too_long", f"may have {most} {self.items[1]} of {longest} characters at the most")
        texts = items if self.exact else map(normalised, items)
        return tuple(dict.fromkeys(texts) if self.distinct else texts)

    def _form(self, limits: Any) -> Schema:
        item = self.item or string(longest=bound(limits, self.longest))
        return {"anyOf": [array(item, most=bound(limits, self.most)), item]}


class Described(NamedTuple):
    """A field of a body: attribute, name in JSON, member and default (`dataclasses.MISSING`: required)."""

    attribute: str
    name: str
    member: Member
    default: Any


@cache
def members_of(body_type: type) -> tuple[Described, ...]:
    """Return the members of a body in their order."""
    hints = get_type_hints(body_type, include_extras=True)
    found = []
    for field in dataclasses.fields(body_type):
        first, *others = field.name.split("_")
        for member in hints[field.name].__metadata__:
            name = member.name or first + "".join(map(str.capitalize, others))
            found.append(Described(field.name, name, member, field.default))
    return tuple(found)


def read_body(body_type: type[T], body: object, limits: Any) -> tuple[T, tuple[str, ...]]:
    """Return the checked body and the names of its ignored members.

    Raises:
        Invalid: there are mistakes; it has all of them.
    """
    fields = Fields(body)
    return read_members(body_type, fields, limits), fields.finish()


def read_members(body_type: type[T], fields: Fields, limits: Any) -> T:
    """Return an instance of ``body_type``, read from an object that the caller finishes."""
    values = {}
    for attribute, name, member, default in members_of(body_type):  # type: ignore[arg-type]  # a type is hashable
        value = fields.raw(name)
        if value is not UNSET and value is not None:
            values[attribute] = member.read(Slot(fields, name, limits), value)
        else:
            values[attribute] = UNSET if default is MISSING else default
            if default is MISSING or not (value is UNSET or member.nullable):
                member.reject_null(Slot(fields, name, limits), required=default is MISSING)
    return body_type(**values)


def read_changes(body_type: type, body: object, limits: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the given members of an update body by attribute, and the names of its ignored members.

    Raises:
        Invalid: there are mistakes; it has all of them.
    """
    fields = Fields(body)
    return read_given(body_type, fields, limits), fields.finish()


def read_given(body_type: type, fields: Fields, limits: Any) -> dict[str, Any]:
    """Return the given members of an object that the caller finishes; null means the default of a member."""
    given = {}
    for attribute, name, member, default in members_of(body_type):
        value = fields.raw(name)
        if value is not UNSET and value is not None:
            given[attribute] = member.read(Slot(fields, name, limits), value)
        elif value is None and default is not MISSING and member.nullable:
            given[attribute] = default
        elif value is None:
            member.reject_null(Slot(fields, name, limits), required=False)
    return given


def body_schema(body_type: type, limits: Any, *, changes: bool = False) -> Schema:
    """Return the schema of a body; ``changes``: of an update body, which has no required member."""
    properties, required = {}, []
    for _, name, member, default in members_of(body_type):
        schema = member.schema(limits)
        properties[name] = schema if default is MISSING or not member.nullable else nullable(schema)
        if default is MISSING and not changes:
            required.append(name)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def body_schemas(limits: Any, *body_types: type) -> Mapping[str, Schema]:
    """Return the schemas of bodies by the names of their classes."""
    return {body_type.__name__: body_schema(body_type, limits) for body_type in body_types}
