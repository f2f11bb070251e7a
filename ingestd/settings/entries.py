"""The setting ``entries`` of a pipeline: one entry mapping, or a list of entry mappings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from collections.abc import Mapping as MappingOf
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, field_validator

from ingestd.core.mapping import COLUMN, PARENT, EntrySpec, LookupSpec, Mapping, TableSource, parse_template
from ingestd.core.mapping.conversion import ValueRules
from ingestd.core.mapping.specification import ColumnSelection, name_parts
from ingestd.core.mapping.typed import ExpressionError
from ingestd.core.phrases import nearest
from ingestd.settings.entry_texts import data_type, template
from ingestd.settings.entry_values import ValueSettings
from ingestd.settings.node import described_value
from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import checked_by, problem, refuse

if TYPE_CHECKING:
    from ingestd.core.mapping.compiler import Compiler

_PART = "file.part."
_RESERVED = ("units.", "file.")

MOST_LISTS = 16
"""The maximum depth of nested lists in ``each``."""

Text: TypeAlias = Annotated[str, Field(min_length=1)]


class ValueExpression(SettingsPart):
    """A value that an expression computes."""

    expr: str = Field(
        description="An SQL expression over the fields of one record; docs/mapping.md lists its functions.",
        examples=["mass_g / 1000"],
    )


class ColumnChoice(SettingsPart):
    """Columns that are chosen by their names in each file."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["all"]}, {"required": ["match"]}]})

    all: Literal[True] | None = Field(default=None, description="Every column that neither the key nor the type names.")
    match: Text | Annotated[tuple[Text, ...], Field(min_length=1)] | None = Field(
        default=None, description="A glob of column names, or a list of globs.", examples=["mass_*"]
    )
    except_: tuple[Text, ...] = Field(
        default=(),
        validation_alias="except",
        description="Columns to omit, by name or glob.",
        examples=[["remark"]],
    )

    def selection(self) -> ColumnSelection:
        """Return the choice that the mapping applies to the columns of a batch."""
        match = self.match or "*"
        return ColumnSelection(match=(match,) if isinstance(match, str) else match, excluded=self.except_)


class LookupSettings(SettingsPart):
    """A value from a small table in a CSV file, found by the text of an expression."""

    file: Text = Field(
        description="The CSV file (UTF-8, with a header, at most 16 MiB). A relative path starts at the folder of this file.",
        examples=["parts.csv"],
    )
    key: Text = Field(description="The column with the keys. Each key has one row.", examples=["number"])
    value: Text = Field(description="The column with the values.", examples=["weight"])
    by: Text = Field(
        description="The text to find among the keys: an SQL expression over the fields of one record.",
        examples=["part", "UPPER(part)"],
    )
    missing: Literal["reject", "none"] = Field(
        default="reject",
        description="The reaction to a text that is not among the keys. reject: reject the record; none: use no value, as for "
        "a missing field.",
    )
    delimiter: Literal[",", ";", "\t", "|"] = Field(
        default=",", description="The character between the columns of the file."
    )

    def spec(self) -> LookupSpec:
        """Return the specification that the mapping compiles."""
        table = TableSource(file=self.file, key=self.key, value=self.value, delimiter=self.delimiter)
        return LookupSpec(table=table, by=self.by, missing=self.missing)


def expressions_of(lookup: MappingOf[str, LookupSettings], let: MappingOf[str, str]) -> Compiler:
    """Return a compiler that knows the names of ``lookup`` and ``let``."""
    # Imported here, so that a configuration without expressions needs no import of sqlglot.
    from ingestd.core.mapping.expression import define_lookup, expression_compiler  # noqa: PLC0415

    compiler = expression_compiler()
    for name, one in lookup.items():
        define_lookup(compiler, name, one.spec(), {})
    for name, text in let.items():
        compiler.define(name, text)
    return compiler


def _check_name(name: str, found: str) -> None:
    """Check a name of 'lookup' or 'let'. ``found``: the value that an error reports."""
    if not name or name == COLUMN or name.startswith(_RESERVED) or set(name) & set("{}\0"):
        refuse((name,), problem(f"The name '{name}' can't be used: it has braces, or is reserved."), found)


def check_optional(optional: tuple[str, ...], names: Collection[str]) -> None:
    """Check that all names of ``optional`` are in ``names``, the names that a mapping or a group uses."""
    for position, name in enumerate(optional):
        if name not in names:
            sentence = f"Nothing here uses '{name}', so it can't be optional."
            refuse((position,), problem(sentence + nearest(name, names)), name)


def _lists(each: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (each,) if isinstance(each, str) else each or ()


class UnknownPart(ExpressionError):
    """A template or an expression uses a part that ``file_name`` does not have, or a parent that ``each`` does not have."""


def _check_template_parts(text: str, info: ValidationInfo) -> None:
    try:
        _check_parts(parse_template(text).fields, info)
    except UnknownPart as unknown:
        raise problem(str(unknown)) from None


def _check_parts(names: Iterable[str], info: ValidationInfo) -> None:
    """Check that ``file_name`` and ``each`` have the parts and parents that a template or an expression uses.

    Raises:
        UnknownPart: a part or a parent does not exist.
    """
    names = tuple(names)
    lists = _lists(info.data.get("each"))
    for name in names:
        if lists and name.startswith(PARENT * (len(lists) + 1)):
            record = PARENT * len(lists)
            raise UnknownPart(f"{{{name}}} has no such parent; with this 'each' the record is {{{record}name}}.")
    if "file_name" in info.data:
        form = info.data["file_name"]
        known = {f"{_PART}{name}" for name in name_parts(form).groupindex} if form is not None else set()
        for name in names:
            if name.startswith(_PART) and name not in known:
                parts = ", ".join(sorted(known)) or "none"
                raise UnknownPart(f"{{{name}}} is no part of 'file_name'; its parts are {parts}.")


class EntrySettings(SettingsPart):
    """One entry for each record (``value``), or one entry for each record and column (``columns``).

    With ``each``, each item of a list in a record counts as a record.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["value"]}, {"required": ["columns"]}]})

    file_name: Annotated[str, checked_by(name_parts)] | None = Field(
        default=None,
        description="The form of the file's name with its parts in braces: {file.part.run} is the part {run}. "
        "A file with another name is rejected.",
        examples=["RUN{run}_{bench}.csv"],
    )
    each: Text | Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_LISTS)] | None = Field(
        default=None,
        description="A field with a list, as in JSON. Each item makes entries. A list of names leads to nested lists. {name} "
        "is then a field of the item, {index} the item's number, and {parent.name} a field of the record around it.",
        examples=["parts", ["parts", "properties"]],
    )
    key: Annotated[str, Field(min_length=1), AfterValidator(template)] = Field(
        description="The entry's key. {name} is a field of the record or a name of 'let'. {file.name} and {file.stem} name the "
        "file. {file.part.NAME} is a part of 'file_name'. {file.preamble.NAME} is a row above "
        "the header. {units.NAME} is the unit of a column. {column} names the column if "
        "'columns' is set.",
        examples=["{part_number}.mass", "{part_number}.{column}"],
    )
    lookup: dict[str, LookupSettings] = Field(
        default_factory=dict,
        description="Values from tables by name, used like the names of 'let'. If a file changes, all records are mapped again.",
        examples=[{"mass_kg": {"file": "parts.csv", "key": "number", "value": "mass", "by": "part"}}],
    )
    let: dict[str, str] = Field(
        default_factory=dict,
        description="Expressions by name. Other expressions and templates use a name like a field; it hides an equal field.",
        examples=[{"mass_kg": "mass_g / 1000"}],
    )
    where: str | None = Field(
        default=None,
        description="Only records for which this condition is true make entries.",
        examples=["status = 'released' AND mass_kg > 0"],
    )
    value: Annotated[str, AfterValidator(template)] | ValueExpression | None = Field(
        default=None,
        description="The entry's value, written like the key, or {expr: EXPRESSION}. Set either this or 'columns'.",
        examples=["{mass_kg}", {"expr": "mass_g / 1000"}],
    )
    type: Annotated[str, AfterValidator(data_type)] = Field(
        default="scalar", description="The entry's data type; it may contain fields, like the key."
    )
    columns: ColumnChoice | Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = (
        Field(
            default=None,
            validate_default=True,
            description="Columns that each make one entry with the column's value: a list, {all: true, except: [...]} or "
            "{match: GLOB}. Set either this or 'value'.",
            examples=[["mass_kg", "length_mm"], {"all": True, "except": ["remark"]}],
        )
    )
    types: dict[str, Annotated[str, AfterValidator(data_type)]] = Field(
        default_factory=dict,
        description="With 'columns', the data types of single columns instead of 'type'.",
        examples=[{"remark": "text"}],
    )
    values: ValueSettings | None = Field(
        default=None, validate_default=True, description="The conversions of the value before it becomes an entry."
    )
    optional: tuple[Text, ...] = Field(
        default=(),
        description="Names in this mapping that the source may lack. If any other name is missing in all records of a reading, "
        "the reading is rejected.",
        examples=[["remark"]],
    )

    @field_validator("key", "type")
    @classmethod
    def _check_template(cls, text: str, info: ValidationInfo) -> str:
        _check_template_parts(text, info)
        return text

    @field_validator("lookup")
    @classmethod
    def _check_lookup(cls, lookup: dict[str, LookupSettings], info: ValidationInfo) -> dict[str, LookupSettings]:
        for name, one in lookup.items():
            _check_name(name, name)
            before = {earlier: lookup[earlier] for earlier in list(lookup)[: list(lookup).index(name)]}
            try:
                _check_parts(expressions_of(before, {}).compile(one.by).columns, info)
            except ExpressionError as error:
                refuse((name, "by"), problem(str(error), error.position), one.by)
        return lookup

    @field_validator("let")
    @classmethod
    def _check_let(cls, let: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if not let or "lookup" not in info.data:
            return let
        compiler = expressions_of(info.data["lookup"], {})
        for name, text in let.items():
            _check_name(name, text)
            if name in info.data["lookup"]:
                refuse((name,), problem(f"The name '{name}' is in 'lookup', too. Rename one of them."), text)
            try:
                _check_parts(compiler.define(name, text).columns, info)
            except ExpressionError as error:
                refuse((name,), problem(str(error), error.position), text)
        return let

    @field_validator("where")
    @classmethod
    def _check_where(cls, where: str | None, info: ValidationInfo) -> str | None:
        if where is not None and {"lookup", "let"} <= info.data.keys():
            compiler = expressions_of(info.data["lookup"], info.data["let"])
            try:
                _check_parts(compiler.condition(where).columns, info)
            except ExpressionError as error:
                raise problem(str(error), error.position) from None
        return where

    @field_validator("value")
    @classmethod
    def _check_value(cls, value: str | ValueExpression | None, info: ValidationInfo) -> str | ValueExpression | None:
        if isinstance(value, ValueExpression) and {"lookup", "let"} <= info.data.keys():
            compiler = expressions_of(info.data["lookup"], info.data["let"])
            try:
                _check_parts(compiler.compile(value.expr).columns, info)
            except ExpressionError as error:
                refuse(("expr",), problem(str(error), error.position), value.expr)
        elif isinstance(value, str):
            _check_template_parts(value, info)
        return value

    @field_validator("columns")
    @classmethod
    def _check_columns(
        cls, columns: ColumnChoice | tuple[str, ...] | None, info: ValidationInfo
    ) -> ColumnChoice | tuple[str, ...] | None:
        value, key = info.data.get("value"), info.data.get("key")
        if columns is None:
            if "value" in info.data and value is None:
                raise problem("An entry needs either 'value' or 'columns'; found neither.")
            return None
        if value is not None:
            raise problem("An entry has either 'value' or 'columns'; found both. Remove one of them.")
        if key is not None and COLUMN not in parse_template(key).fields:
            raise problem("With 'columns' the key must contain {column}; otherwise every column writes the same entry.")
        if isinstance(columns, ColumnChoice):
            if info.data.get("each") is not None:
                raise problem("With 'each' the columns are a list of names, such as [mass, length].")
            if (columns.all is None) == (columns.match is None):
                raise problem("Choose columns by either 'all: true' or 'match'.")
            return columns
        for position, column in enumerate(columns):
            if column in columns[:position]:
                raise problem(f"The column '{column}' is listed twice.")
        return columns

    @field_validator("optional")
    @classmethod
    def _check_optional(cls, optional: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if optional and info.data.keys() >= cls.model_fields.keys() - {"optional"}:
            check_optional(optional, Mapping((cls.model_construct(**info.data).spec(),)).names)
        return optional

    def spec(self) -> EntrySpec:
        """Return the specification that the mapping compiles."""
        columns, value = self.columns, self.value
        return EntrySpec(
            key=self.key,
            value=value if isinstance(value, str) else None,
            columns=columns if isinstance(columns, tuple) else (),
            type=self.type,
            expression=value.expr if isinstance(value, ValueExpression) else None,
            selection=columns.selection() if isinstance(columns, ColumnChoice) else None,
            types=tuple(self.types.items()),
            where=self.where,
            lookup=tuple((name, one.spec()) for name, one in self.lookup.items()),
            let=tuple(self.let.items()),
            file_name=self.file_name,
            each=_lists(self.each),
            deadband=self.values.deadband if self.values is not None else None,
            rules=self.values.rules() if self.values is not None else ValueRules(),
            optional=self.optional,
        )


EntriesInput: TypeAlias = EntrySettings | Annotated[list[EntrySettings], Field(min_length=1)]


def read_entries(found: Any) -> tuple[EntrySpec, ...]:
    """Return the specifications of one mapping or of a list of mappings; a tuple of specifications is returned unchanged."""
    if isinstance(found, tuple) and all(isinstance(item, EntrySpec) for item in found):
        return found
    items = [found] if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise problem(
            f"Expected one entry (a mapping with key and value) or a list of them, found {described_value(found)}."
        )
    if not items:
        raise problem("Expected at least one entry, found an empty list.")
    entries = _entries().validate_json(json.dumps(items), strict=True)
    return tuple(entry.spec() for entry in entries)


@cache
def _entries() -> TypeAdapter[tuple[EntrySettings, ...]]:
    """Return the validator of a list of mappings. It validates whole lists: the path of a mistake has the item's index."""
    return TypeAdapter(tuple[EntrySettings, ...])
