"""The installed formats: the entry points of the group ``ingestd.formats``, and the setting that selects one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, BinaryIO, TypeAlias, Union

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ingestd.core.errors import SourceUnavailable
from ingestd.sdk.formats.format import FORMAT_CONTRACT, Format
from ingestd.sdk.formats.record_chunk import RecordChunk
from ingestd.sdk.plugins import PluginGroup, PluginUnusable

GROUP = "ingestd.formats"
FORMATS = PluginGroup(
    name=GROUP,
    noun="format",
    base=Format,
    contract=FORMAT_CONTRACT,
    also_called={
        "excel": "xlsx xls xlsm xlsb ods workbook spreadsheet calc",
        "csv": "tsv tab delimited dsv",
        "ndjson": "jsonl jsonlines json_lines",
        "yaml": "yml",
        "hdf5": "h5 hdf",
        "mf4": "mdf mdf4 asam",
        "mat": "matlab",
        "arrow": "feather ipc",
        "parquet": "pq",
        "fixed_width": "fixed fwf columns",
        "ini": "cfg conf properties",
        "junit": "xunit surefire",
        "tdms": "labview",
        "reqif": "doors",
    },
)


class UnusableFormat(Format):
    """An installed format that can't be loaded. Its pipelines stop, but no other pipelines, and no file is rejected."""

    type: str
    reason: str

    def check_usable(self) -> None:
        """Refuse every use.

        Raises:
            SourceUnavailable: always, with the reason.
        """
        raise SourceUnavailable(self.reason)

    def configured_settings(self) -> dict[str, Any]:
        """Raise the error of `check_usable`. So files are not read again when the format can be loaded again."""
        self.check_usable()
        return {}

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:  # noqa: ARG002 - nothing is read
        """Raise the error of `check_usable`."""
        self.check_usable()
        yield from ()


def format_names() -> Sequence[str]:
    """Return the names of the installed formats, sorted. Some of them may fail to load."""
    return FORMATS.names()


def format_class(name: str) -> type[Format]:
    """Return the format called ``name``; no other format is imported.

    Raises:
        PluginUnusable: no format has the name, two distributions offer it, or it can't be loaded.
    """
    found: type[Format] = FORMATS.load(name)
    field = found.model_fields.get("type")
    if field is None or field.default != name:
        raise PluginUnusable(
            f"The format '{name}' is a class without the field type: Literal[{name!r}] ({found.__module__}). Update it.",
            known=True,
        )
    return found


def configured_format(setting: Any, *, strict: bool = False) -> Format:
    """Return the format of a setting: its name, or a mapping with ``type`` and its own settings.

    For an installed format that can't be loaded, return an `UnusableFormat`. ``strict``: a number is not accepted as text.

    Raises:
        ValueError: no format has the name, or its settings are wrong (`pydantic.ValidationError`).
    """
    if isinstance(setting, Format):
        return setting
    settings = {"type": setting} if isinstance(setting, str) else setting
    if not isinstance(settings, Mapping) or not isinstance(settings.get("type"), str):
        raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError as a mistake of the setting
            "Expected the name of a format, or a mapping with type, such as {type: csv, header_row: 3}."
        )
    name = settings["type"]
    try:
        kind = format_class(name)
    except PluginUnusable as error:
        if not error.known:
            raise ValueError(str(error)) from error
        return UnusableFormat(type=name, reason=str(error))
    return (
        kind.model_validate_json(json.dumps(dict(settings)), strict=True) if strict else kind.model_validate(settings)
    )


class _InstalledFormats:
    """Validates and describes a setting that selects an installed format."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        return core_schema.with_info_plain_validator_function(_validated)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del schema
        kinds = [kind for name in format_names() if (kind := _loadable(name)) is not None]
        # Formats with a required setting can't be selected by name alone.
        complete = [
            str(kind.model_fields["type"].default)
            for kind in kinds
            if not any(field.is_required() for field in kind.model_fields.values())
        ]
        choice: Any = Annotated[Union[tuple(kinds)], Field(discriminator="type")]  # noqa: UP007 - of a list of types
        described = handler(TypeAdapter(choice).core_schema)
        return {"anyOf": [{"enum": complete, "type": "string"}, described, {"type": "null"}]}


FormatSetting: TypeAlias = Annotated[Format | None, _InstalledFormats()]
"""The type of an option that selects a format by its name, or by a mapping with its settings; None: no format is selected."""


def _validated(setting: Any, info: ValidationInfo) -> Format | None:
    return None if setting is None else configured_format(setting, strict=info.mode == "json")


def _loadable(name: str) -> type[Format] | None:
    try:
        return format_class(name)
    except PluginUnusable:
        return None
