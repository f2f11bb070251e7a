"""Schemas of sinks and entries in the OpenAPI document; `workspaced.resources.data_sinks.rules` is what really judges."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.schema import (
    COUNT,
    NAME,
    NOT_BLANK,
    OBJECT,
    STAMP,
    TRIMMED,
    UUID,
    Schema,
    given,
    listed,
    nullable,
    record,
    ref,
    text,
    told,
)
from workspaced.settings.model import Limits

SINK_NAME: Final = text(
    pattern=r"^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[A-Za-z]{1,8}-[1-9][0-9]{0,8})$",
)
_NOT_DOTS: Final = {"not": {"enum": [".", ".."]}}
_WORD: Final = nullable(NAME)
_ICON: Final = {"source": _WORD, "name": _WORD, "color": _WORD, "metadata": nullable(OBJECT)}
_TRACKED: Final = {"createdAt": STAMP, "updatedAt": STAMP, "createdBy": NAME, "updatedBy": NAME}


def schemas(limits: Limits) -> dict[str, Schema]:
    """By their names among the document's components."""
    return {**_records(), **_requests(limits), **_mass(limits)}


def _records() -> dict[str, Schema]:
    sink = {
        "id": UUID,
        "workspaceId": UUID,
        "label": NAME,
        "description": nullable(NAME),
        "tags": nullable(told(NAME, "Separated by commas; kept as it was sent.")),
        "icon": {"anyOf": [ref("Icon"), {"type": "string"}, {"type": "null"}]},
        "visibleId": text(pattern="^[A-Z]{1,8}-[1-9][0-9]*$"),
        "serial": {"type": "integer", "minimum": 1},
        **_TRACKED,
    }
    entry = {
        "id": UUID,
        "key": NAME,
        "dataSinkId": UUID,
        "value": nullable(NAME),
        "dataType": NAME,
        **_TRACKED,
    }
    return {
        "DataSink": record({**sink, "entries": listed(ref("DataSinkEntry"))}),
        "DataSinkOnly": {**record(sink), "not": {"required": ["entries"]}},
        "DataSinkEntry": record(entry),
        "Icon": {"type": "object", "properties": _ICON},
    }


def _requests(limits: Limits) -> dict[str, Schema]:
    label = text(shortest=1, longest=limits.label_length, pattern=NOT_BLANK, about="Its name; need not be unique.")
    sink = {
        "label": label,
        "description": text(longest=limits.description_length),
        "tags": text(longest=limits.tags_length, about="Separated by commas."),
        "icon": told(
            {**OBJECT, "properties": _ICON},
            f"At most {limits.icon_bytes} bytes as JSON. A string that holds such JSON will do, too.",
        ),
    }
    entries = listed(ref("NewDataSinkEntry"), most=limits.new_sink_entries)
    entry = {
        "id": UUID,
        "key": key_schema(limits),
        "value": _value(limits),
        "dataType": _data_type(limits),
    }
    changes = given(sink)
    changes["properties"]["label"] = label
    entry_changes = given({"value": entry["value"], "dataType": entry["dataType"]})
    entry_changes["properties"]["dataType"] = entry["dataType"]
    return {
        "NewDataSink": given({"id": UUID, **sink, "entries": entries}, required={"label"}),
        "DataSinkChanges": changes,
        "NewDataSinkEntry": given(entry, required={"key", "dataType"}),
        "DataSinkEntryChanges": entry_changes,
    }


def _mass(limits: Limits) -> dict[str, Schema]:
    setting = {
        "key": key_schema(limits),
        "value": _value(limits),
        "dataType": told(_data_type(limits), "Of a new entry scalar, else as it is, unless it is given."),
        "id": told(UUID, "Of a new entry."),
        "observedAt": told(STAMP, "When the value was true; it does not replace one that was observed later."),
    }
    entry = ref("DataSinkEntry")
    bulk = listed(ref("MassItem"), least=1, most=limits.bulk_items)
    counts = dict.fromkeys(("accepted", "created", "updated", "unchanged", "deleted"), COUNT)
    error = record({"code": NAME, "detail": NAME, "error": NAME, "errors": listed(ref("Mistake"))}, optional={"errors"})
    result = {
        "index": COUNT,
        "status": {"type": "integer"},
        "entry": nullable(entry),
        "error": error,
    }
    results = listed(record(result, optional={"entry", "error"}))
    single = given({**setting, "delete": {"const": False}}, required={"key", "value"})
    keyed = given({**setting, "delete": {"const": False}}, required={"value"})
    del keyed["properties"]["key"]
    item = given({**setting, "delete": {"const": False}}, required={"key", "value"})
    removal = given({**setting, "delete": {"const": True}}, required={"key", "delete"})
    return {
        "MassItem": {"anyOf": [item, removal]},
        "MassSingle": {**single, "not": {"required": ["entries"]}},
        "MassBulk": {
            "type": "object",
            "properties": {"entries": bulk},
            "required": ["entries"],
            "not": {"required": ["key"]},
        },
        "Mass": {"anyOf": [ref("MassSingle"), bulk, ref("MassBulk")]},
        "KeyedValue": {**keyed, "not": {"anyOf": [{"required": ["entries"]}, {"required": ["key"]}]}},
        "MassCounts": record({**counts, "failed": COUNT, "results": results}, optional={"failed", "results"}),
        "MassResults": record({"results": results, "succeeded": COUNT, "failed": COUNT}),
        "MassAnswer": {
            "anyOf": [
                entry,
                listed(nullable(entry)),
                record({"entries": listed(nullable(entry))}),
                ref("MassCounts"),
                ref("MassResults"),
            ]
        },
    }


def key_schema(limits: Limits) -> Schema:
    """A key as it can be given to an entry."""
    about = f"Unique in its sink, at most {limits.key_bytes} bytes in UTF-8, neither `.` nor `..`."
    return {**text(shortest=1, longest=limits.key_length, pattern=TRIMMED, about=about), **_NOT_DOTS}


def _value(limits: Limits) -> Schema:
    return text(longest=limits.value_bytes, about=f"Kept as it is sent; at most {limits.value_bytes} bytes in UTF-8.")


def _data_type(limits: Limits) -> Schema:
    about = "An open vocabulary: scalar, text, boolean, date, datetime, vector, matrix, json, url…"
    return text(shortest=1, longest=limits.data_type_length, pattern="^[A-Za-z][A-Za-z0-9_.-]*$", about=about)
