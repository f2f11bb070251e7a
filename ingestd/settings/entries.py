"""The setting ``entries`` of a pipeline: one entry mapping, or a list of them."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, RootModel, ValidationInfo, field_validator

from ingestd.core.mapping import COLUMN, EntrySpec, TemplateError, parse_template
from ingestd.settings.node import described_value
from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import problem, validated

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def _template(text: str) -> str:
    try:
        parse_template(text)
    except TemplateError as error:
        sentence = str(error)
        raise problem(f"{sentence[:1].upper()}{sentence[1:]}.", error.position) from None
    return text


def _data_type(text: str) -> str:
    if not parse_template(_template(text)).fields and not _DATA_TYPE.fullmatch(text):
        raise problem(
            "Expected a data type such as scalar, text or datetime: a letter, then at most 63 letters, digits, '_', '.' or '-'."
        )
    return text


class EntrySettings(SettingsPart):
    """One entry for each record (``value``), or one for each record and column (``columns``)."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["value"]}, {"required": ["columns"]}]})

    key: Annotated[str, Field(min_length=1), AfterValidator(_template)] = Field(
        description="The entry's key. {name} is a field of the record, {file.name} and {file.stem} name the file, and "
        "{column} names the column if 'columns' is set.",
        examples=["{part_number}.mass", "{part_number}.{column}"],
    )
    value: Annotated[str, AfterValidator(_template)] | None = Field(
        default=None,
        description="The entry's value, written like the key. Set either this or 'columns'.",
        examples=["{mass_kg}"],
    )
    type: Annotated[str, AfterValidator(_data_type)] = Field(
        default="scalar", description="The entry's data type; it may contain fields, like the key."
    )
    columns: tuple[Annotated[str, Field(min_length=1)], ...] | None = Field(
        default=None,
        validate_default=True,
        min_length=1,
        description="Columns of which each makes one entry with the column's value. Set either this or 'value'.",
        examples=[["mass_kg", "length_mm"]],
    )

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        value, key = info.data.get("value"), info.data.get("key")
        if columns is None:
            if "value" in info.data and value is None:
                raise problem("An entry needs either 'value' or 'columns'; found neither.")
            return None
        if value is not None:
            raise problem("An entry has either 'value' or 'columns'; found both. Remove one of them.")
        if key is not None and COLUMN not in parse_template(key).fields:
            raise problem("With 'columns' the key must contain {column}; otherwise every column writes the same entry.")
        for position, column in enumerate(columns):
            if column in columns[:position]:
                raise problem(f"The column '{column}' is listed twice.")
        return columns

    def spec(self) -> EntrySpec:
        """Return the specification that the mapping compiles."""
        return EntrySpec(key=self.key, value=self.value, columns=self.columns or (), type=self.type)


class _Entries(RootModel[tuple[EntrySettings, ...]]):
    """A list of entry mappings, validated together so that each mistake keeps its location."""


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
    return tuple(entry.spec() for entry in validated(_Entries, items).root)
