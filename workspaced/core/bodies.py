"""Request bodies: pydantic models. Each field is annotated with a `Member`, and is required if it has no default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from msgspec import UNSET
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from workspaced.core.json_schema import (
    Schema,
    nullable,
)
from workspaced.core.members import Context, Info, Member, rejected
from workspaced.core.problems import FieldError, Invalid


class Body(BaseModel):
    """A request body, or an object within a request body. Names in JSON are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    is_update: ClassVar[bool] = False
    """Whether members without a default may be absent. They can never be null."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Names of members that have no effect, but are not reported as ignored."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict):
            raise rejected("wrong_type", "must be a JSON object")
        values: dict[str, Any] = {}
        nulls, omitted = set(), set()
        for name, (field, member, is_required) in members_of(cls).items():
            if (value := given.get(name)) is not None:
                values[name] = value
            elif name in given and member.nullable and not is_required:
                nulls.add(field)
            elif name in given or (is_required and not cls.is_update):
                values[name] = rejected(*member.absent(null=cls.is_update))
            elif is_required:
                values[name] = UNSET
                omitted.add(field)
        made = handler(values)
        if nulls or omitted:
            made.model_fields_set.update(nulls)
            made.model_fields_set.difference_update(omitted)
        return made

    def given(self) -> dict[str, Any]:
        """Return the fields that the request has. A field that is null in the request has its default value."""
        given = self.model_fields_set
        return {name: value for name, value in vars(self).items() if name in given}


BodyT = TypeVar("BodyT", bound=Body)


@dataclass(frozen=True, kw_only=True)
class Nested(Member):
    """An object, or a list of objects, with the members of ``body``. A subclass implements ``_check_inner``."""

    body: type[Body]
    is_list: bool = False

    def parsed(self, value: Any) -> Any:
        """Return the object or list. A subclass that also accepts JSON text returns the parsed text."""
        return value

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        """Return the checked value. ``check`` converts a value to the body or to the list of bodies."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = handler.generate_schema(list[self.body] if self.is_list else self.body)  # type: ignore[name-defined]
        return core_schema.with_info_wrap_validator_function(self._check_inner, inner)


class FieldMember(NamedTuple):
    """A field of a body with its member."""

    field: str
    member: Member
    is_required: bool


@cache
def members_of(body_type: type[Body]) -> Mapping[str, FieldMember]:
    """Return the members of a body by their names in JSON."""
    found = {}
    for name, field in body_type.model_fields.items():
        member = next(one for one in field.metadata if isinstance(one, Member))
        found[field.alias or name] = FieldMember(name, member, field.is_required())
    return found


def read_body(
    body_type: type[BodyT], body: object, limits: Any, *, now: int = 0, pointer: str = ""
) -> tuple[BodyT, tuple[str, ...]]:
    """Return the checked body, and the names of its ignored members. ``pointer``: the JSON Pointer of ``body`` in the request.

    Raises:
        Invalid: the body has mistakes; the exception has all of them.
    """
    try:
        made = body_type.model_validate(body, context=Context(limits, now))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise Invalid.because([one for details in found for one in _field_errors(details, pointer)]) from None
    if not (ignored := set(_ignored(body_type, body, ""))):
        return made, ()
    prefix = "".join(f"{part}." for part in pointer.split("/") if part and not part.isdigit())
    return made, tuple(sorted(prefix + name for name in ignored))


def _field_errors(found: ErrorDetails, pointer: str) -> Iterator[FieldError]:
    pointer += "".join(f"/{part}" for part in found["loc"])
    for must in found["ctx"]["musts"]:
        yield FieldError(pointer=pointer, code=found["type"], detail=f"{pointer or 'The body'} {must}.")


def _ignored(body_type: type[Body], given: Any, prefix: str) -> Iterator[str]:
    members = members_of(body_type)
    for name, value in given.items():
        if name not in members and name not in body_type.unused:
            yield prefix + name
        elif name in members and isinstance(nested := members[name].member, Nested):
            parsed = nested.parsed(value)
            for inner in parsed if isinstance(parsed, list) else [parsed]:
                if isinstance(inner, dict):
                    yield from _ignored(nested.body, inner, f"{prefix}{name}.")


def body_schema(body_type: type[Body], limits: Any) -> Schema:
    """Return the schema of a body."""
    properties, required = {}, []
    for name, (_, member, is_required) in members_of(body_type).items():
        schema = member.schema(limits)
        properties[name] = schema if is_required or not member.nullable else nullable(schema)
        if is_required and not body_type.is_update:
            required.append(name)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}
