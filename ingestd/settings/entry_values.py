"""The setting ``values`` of an entry mapping: the conversions of a value."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from ingestd.core.deadband import band_of
from ingestd.core.mapping import parse_template
from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRules
from ingestd.core.mapping.number import decimal_of
from ingestd.core.mapping.unit import UnitError, unit_conversion
from ingestd.settings.entry_texts import template, without_nul
from ingestd.settings.part import SettingsPart
from ingestd.settings.schedule import known_timezone
from ingestd.settings.validation import checked_by, problem


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"The regular expression can't be used: {error}.") from None


def _check_number(text: str) -> None:
    if decimal_of(text) is None:
        raise ValueError(f"'{text}' is no number.")


def _check_band(text: str) -> None:
    if band_of(text) is None:
        raise ValueError(f"'{text}' is no dead-band. Expected a number of 0 or more, or a percentage such as 1%.")


def _check_date_format(text: str) -> None:
    if "%Z" in text.replace("%%", ""):
        raise ValueError(
            "'%Z' can't be used, because the name of a time zone, such as CET, does not give its offset. If the name is always"
            " the same, write it instead of '%Z', as in '%H:%M UTC', and set 'timezone'."
        )


def _number_text(found: Any) -> Any:
    return str(found) if isinstance(found, int | float) and not isinstance(found, bool) else found


def _check_units(source: str, target: str) -> None:
    try:
        unit_conversion(source, target)
    except UnitError as error:
        raise problem(str(error)) from None


Text: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(without_nul)]
Limit: TypeAlias = Annotated[
    str,
    BeforeValidator(_number_text),
    checked_by(_check_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
Band: TypeAlias = Annotated[
    str,
    BeforeValidator(_number_text),
    checked_by(_check_band),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]
Zone: TypeAlias = Annotated[str, checked_by(known_timezone)]


class UnitSettings(SettingsPart):
    """A conversion of units."""

    from_: Annotated[str, Field(min_length=1), AfterValidator(template)] = Field(
        validation_alias="from",
        description="The unit of the source: a unit such as g, or a template such as {units.{column}}.",
        examples=["g", "{units.{column}}"],
    )
    to: Annotated[str, Field(min_length=1)] = Field(
        validate_default=True, description="The unit of the entry.", examples=["kg"]
    )

    @field_validator("from_")
    @classmethod
    def _check_source(cls, source: str) -> str:
        if not parse_template(source).fields:
            _check_units(source, source)
        return source

    @field_validator("to")
    @classmethod
    def _check(cls, target: str, info: ValidationInfo) -> str:
        source = info.data.get("from_", target)
        _check_units(target if parse_template(source).fields else source, target)
        return target


class DateSettings(SettingsPart):
    """A date, which becomes ISO 8601."""

    format: Annotated[Text, checked_by(_check_date_format)] = Field(
        description="iso, or the form of the source with the codes of strptime, except %Z.",
        examples=["%d.%m.%Y %H:%M", "iso"],
    )
    timezone: Zone | None = Field(
        default=None,
        description="The time zone of a date without offset, by its IANA name. A time that the clocks skip or repeat is "
        "rejected.",
        examples=["Europe/Berlin"],
    )
    to: Zone | None = Field(
        default=None, description="The time zone of the entry; default: the time zone of the source."
    )


class PadSettings(SettingsPart):
    """Fill a short value with a character."""

    width: int = Field(ge=1, le=10_000, description="The minimum number of characters; a longer value stays unchanged.")
    with_: Annotated[str, Field(min_length=1, max_length=1), AfterValidator(without_nul)] = Field(
        default="0", validation_alias="with", description="The fill character."
    )
    side: Literal["left", "right"] = Field(default="left", description="The side that is filled.")


class ValueSettings(SettingsPart):
    """The conversions of a value, in this order. Each rule gives an exact result or rejects the record."""

    trim: bool = Field(default=False, description="Whether white space around the value is removed.")
    missing: tuple[str, ...] = Field(
        default=(), description="Texts that mean a missing value; they make no entry.", examples=[["", "n/a", "-"]]
    )
    case: Literal["upper", "lower"] | None = Field(default=None, description="Convert letters: upper or lower.")
    one_of: tuple[Text, ...] | dict[str, Annotated[str, AfterValidator(without_nul)]] | None = Field(
        default=None,
        description="The permitted values: a list, or a mapping from each value to the entry's value.",
        examples=[["open", "closed"], {"OK": "pass", "NOK": "fail"}],
    )
    pattern: Annotated[str, checked_by(_check_pattern)] | None = Field(
        default=None,
        description="A regular expression that the whole value must match.",
        examples=["[A-Z]{2}-[0-9]{5}"],
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="The decimal mark of the source; the entry has a point. Other values are rejected."
    )
    group: Literal["", ".", ",", " ", "'", "\u00a0", "\u202f"] = Field(
        default="", description="The character between groups of three digits in the source."
    )
    unit: UnitSettings | None = Field(
        default=None, description="Convert the number from a unit to another unit, exactly."
    )
    min: Limit | None = Field(default=None, description="The smallest permitted number, in the unit of the entry.")
    max: Limit | None = Field(default=None, description="The largest permitted number, in the unit of the entry.")
    digits: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Round to this number of significant digits; a half is rounded away from zero.",
    )
    decimals: int | None = Field(
        default=None, ge=0, le=100, validate_default=True,
        description="Write exactly this number of decimals: rounded, or filled with zeros.",
    )  # fmt: skip
    deadband: Band | None = Field(
        default=None,
        description="The dead-band, as a number in the unit of the entry, or as a percentage of the value last sent. "
        "A number is not sent if it differs from the value last sent by at most the dead-band.",
        examples=["0.5", "1%"],
    )
    date: DateSettings | None = Field(default=None, description="Convert a date to ISO 8601.")
    pad: PadSettings | None = Field(default=None, description="Fill a short value with a character.")

    @field_validator("decimals")
    @classmethod
    def _check(cls, decimals: int | None, info: ValidationInfo) -> int | None:
        if decimals is not None and info.data.get("digits") is not None:
            raise problem("Values have either 'digits' or 'decimals'; found both. Remove one of them.")
        if info.data.get("group") and info.data.get("group") == (info.data.get("decimal") or "."):
            raise problem("'group' and 'decimal' are the same character.")
        return decimals

    def rules(self) -> ValueRules:
        """Return the rules that the mapping applies."""
        one_of = self.one_of or ()
        pairs = tuple(one_of.items()) if isinstance(one_of, dict) else tuple((value, value) for value in one_of)
        date, pad = self.date, self.pad
        return ValueRules(
            trim=self.trim,
            missing=self.missing,
            case=self.case,
            one_of=pairs,
            pattern=self.pattern,
            decimal=self.decimal or ("." if self.group else None),
            group=self.group,
            unit=UnitRule(source=self.unit.from_, target=self.unit.to) if self.unit else None,
            minimum=self.min,
            maximum=self.max,
            digits=self.digits,
            decimals=self.decimals,
            date=DateRule(form=date.format, timezone=date.timezone, target=date.to) if date else None,
            pad=PadRule(width=pad.width, fill=pad.with_, side=pad.side) if pad else None,
        )
