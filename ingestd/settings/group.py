"""The setting ``group`` of a pipeline: one record for each group of records, before the mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.groups.specification import Comparison, Function
from ingestd.core.mapping import EntrySpec, Mapping, parse_template
from ingestd.core.mapping.typed import ExpressionError
from ingestd.settings.entries import check_optional, expressions_of
from ingestd.settings.node import described_value
from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import problem, refuse, validated

_FUNCTIONS: tuple[Function, ...] = ("first", "last", "min", "max", "mean", "sum", "count")


def _check_name(name: str) -> str:
    if not name or name.startswith(("units.", "file.")) or set(name) & set("{}\0") or name == "column":
        raise problem(f"The name '{name}' can't be used: it is empty, has braces, or is reserved.")
    return name


def _check_key(name: str) -> None:
    """Check a key below 'let' or 'take'."""
    try:
        _check_name(name)
    except PydanticCustomError as error:
        refuse((name,), error, name)


Name: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_name)]
Column: TypeAlias = Annotated[str, Field(min_length=1)]


class AggregateSettings(SettingsPart):
    """One field of a group: a function, and the field of the records to which it applies. Empty values are ignored."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in _FUNCTIONS]})

    first: Column | None = Field(default=None, description="The first value, in the order of the source or by 'order'.")
    last: Column | None = Field(default=None, description="The last value, in the order of the source or by 'order'.")
    min: Column | None = Field(default=None, description="The smallest value, as written in the source.")
    max: Column | None = Field(default=None, description="The largest value, as written in the source.")
    mean: Column | None = Field(
        default=None,
        description="The exact mean. If its decimals have no end, it has 15 significant digits and at least 18 decimals.",
        examples=["mass_kg"],
    )
    sum: Column | None = Field(default=None, description="The exact sum.")
    count: Column | None = Field(default=None, description="The number of values that are not empty.")
    order: Column | None = Field(
        default=None, description="With first or last: the field that orders the records.", examples=["measured_at"]
    )
    as_: Comparison | None = Field(
        default=None,
        validation_alias="as",
        description="How min, max and 'order' compare values: number (default), text, date (ISO 8601 without offset), "
        "or instant (ISO 8601 with offset).",
    )
    decimals: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="With mean: exactly this number of decimals, rounded once from the exact mean.",
    )

    @model_validator(mode="after")
    def _check(self) -> AggregateSettings:
        found = [name for name in _FUNCTIONS if getattr(self, name) is not None]
        if len(found) != 1:
            raise problem(f"Expected one of {', '.join(_FUNCTIONS)}; found {' and '.join(found) or 'none'}.")
        if self.order is not None and found[0] not in {"first", "last"}:
            raise problem(f"'order' belongs to first and last; '{found[0]}' has no order. Remove it.")
        if self.as_ is not None and self.order is None and found[0] not in {"min", "max"}:
            raise problem(f"'as' says how values are compared; '{found[0]}' without 'order' compares none. Remove it.")
        if self.decimals is not None and found[0] != "mean":
            raise problem(f"'decimals' belongs to mean; '{found[0]}' is never rounded. Remove it.")
        return self

    def spec(self) -> AggregateSpec:
        """Return the specification that the group stage compiles."""
        [function] = [name for name in _FUNCTIONS if getattr(self, name) is not None]
        return AggregateSpec(
            function=function,
            field=getattr(self, function),
            order=self.order,
            compared=self.as_ or "number",
            decimals=self.decimals,
        )


def _read_aggregate(found: Any) -> AggregateSpec:
    if found == "count":
        return AggregateSpec(function="count", field=None)
    if isinstance(found, AggregateSpec):
        return found
    if not isinstance(found, dict):
        raise problem(
            f"Expected count, or a function and its field, such as {{mean: mass_kg}}; found {described_value(found)}."
        )
    return validated(AggregateSettings, found).spec()


Aggregate: TypeAlias = Annotated[
    AggregateSpec, PlainValidator(_read_aggregate, json_schema_input_type=Literal["count"] | AggregateSettings)
]


class GroupSettings(SettingsPart):
    """Makes one record of each group of records with the same texts in ``by``. The mapping gets the records of the groups."""

    by: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="Records with the same texts in these fields are a group. A record without one of the fields is rejected.",
        examples=[["part"]],
    )
    let: dict[str, str] = Field(
        default_factory=dict,
        description="Expressions over the fields of one record, by name; 'by', 'take' and 'where' use the names like fields.",
        examples=[{"day": "LEFT(measured_at, 10)"}],
    )
    where: str | None = Field(
        default=None,
        description="Only records for which this condition is true are grouped.",
        examples=["status = 'ok'"],
    )
    take: Annotated[dict[str, Aggregate], Field(min_length=1)] = Field(
        description="The other fields of a group, by name. count is the number of records in the group.",
        examples=[{"mass": {"mean": "mass_kg"}, "samples": "count"}],
    )

    optional: tuple[Column, ...] = Field(
        default=(),
        description="Names in 'by', 'take', 'let' and 'where' that the source may lack. If any other name is missing in all "
        "records of a reading, the reading is rejected.",
        examples=[["remark"]],
    )

    @field_validator("by")
    @classmethod
    def _check_by(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        for position, name in enumerate(by):
            if name in by[:position]:
                raise problem(f"The field '{name}' is listed twice.")
        return by

    @field_validator("let")
    @classmethod
    def _check_let(cls, let: dict[str, str]) -> dict[str, str]:
        compiler = expressions_of({}, {})
        for name, text in let.items():
            _check_key(name)
            try:
                _check_sources(compiler.define(name, text).columns)
            except ExpressionError as error:
                refuse((name,), problem(str(error), error.position), text)
        return let

    @field_validator("where")
    @classmethod
    def _check_where(cls, where: str | None, info: ValidationInfo) -> str | None:
        if where is not None and "let" in info.data:
            try:
                _check_sources(expressions_of({}, info.data["let"]).condition(where).columns)
            except ExpressionError as error:
                raise problem(str(error), error.position) from None
        return where

    @field_validator("take")
    @classmethod
    def _check_take(cls, take: dict[str, AggregateSpec], info: ValidationInfo) -> dict[str, AggregateSpec]:
        for name in take:
            _check_key(name)
            if name in info.data.get("by", ()):
                refuse((name,), problem(f"The name '{name}' is in 'by', too. Rename the aggregate."), name)
        return take

    @field_validator("optional")
    @classmethod
    def _check_optional(cls, optional: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if optional and info.data.keys() >= cls.model_fields.keys() - {"optional"}:
            check_optional(optional, Aggregation(cls.model_construct(**info.data).spec()).sources)
        return optional

    def spec(self) -> GroupSpec:
        """Return the specification that the group stage compiles."""
        return GroupSpec(
            by=self.by,
            take=tuple(self.take.items()),
            where=self.where,
            let=tuple(self.let.items()),
            optional=self.optional,
        )


def _check_sources(names: Iterable[str]) -> None:
    """Check the fields and facts of an expression.

    Raises:
        ExpressionError: a name is a part of 'file_name', which only an entry mapping has.
    """
    for name in names:
        if name.startswith("file.part."):
            raise ExpressionError(f"{{{name}}} is a part of 'file_name', which only entries can use.")


def read_group(found: Any) -> GroupSpec:
    """Return the specification of a group stage; a specification is returned unchanged."""
    if isinstance(found, GroupSpec):
        return found
    if not isinstance(found, dict):
        raise problem(f"Expected a mapping with 'by' and 'take', found {described_value(found)}.")
    return validated(GroupSettings, found).spec()


def check_entries_of_groups(group: GroupSpec, entries: tuple[EntrySpec, ...]) -> None:
    """Check that entry mappings use only the fields of a group, and make a different key for each group.

    Raises:
        PydanticCustomError: an entry mapping uses another field, or makes the same key for several groups.
    """
    for name in Mapping(entries).fields:
        if name not in group.names and not name.startswith("units."):
            raise problem(
                f"The entries use '{name}', but with 'group' a record has only: {', '.join(group.names)}. "
                "Add the name to 'by' or 'take'."
            )
    for spec in entries:
        named = parse_template(spec.key).fields
        computed = {name for name, _ in (*spec.let, *spec.lookup)}
        lacks = [name for name in group.by if name not in named]
        if lacks and spec.where is None and not computed.intersection(named):
            raise problem(
                f"The key '{spec.key}' lacks {{{lacks[0]}}}, so several groups would have the same key. Add it to the key."
            )
