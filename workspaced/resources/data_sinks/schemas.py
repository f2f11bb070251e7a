"""JSON Schemas of bodies that Python types can't express: mass updates, and sinks with their entries."""

from __future__ import annotations

from workspaced.core.bodies import body_schema
from workspaced.core.json_schema import COUNT, STRING, Schema, array, nullable, record_schemas, ref, response
from workspaced.resources.data_sinks.origins import Origins
from workspaced.resources.data_sinks.records import DataSinkOnlyRecord, IconRecord
from workspaced.resources.data_sinks.rules import MassRemoval, MassSetting, NewDataSinkEntry, SingleSetting
from workspaced.settings.model import Limits


def sink_schemas(limits: Limits) -> dict[str, Schema]:
    """Return the schemas by their names."""
    return {**_request_schemas(limits), **_response_schemas()}


def _request_schemas(limits: Limits) -> dict[str, Schema]:
    setting, single = body_schema(MassSetting, limits), body_schema(SingleSetting, limits)
    for schema in (setting, single):
        schema["properties"]["delete"] = {"anyOf": [{"const": False}, {"type": "null"}]}
    removal = body_schema(MassRemoval, limits)
    removal["properties"]["delete"] = {"const": True}
    removal["required"].append("delete")
    keyed = {name: schema for name, schema in single["properties"].items() if name != "key"}
    bulk = array(ref("MassItem"), least=1, most=limits.bulk_items)
    return {
        "NewDataSinkEntry": body_schema(NewDataSinkEntry, limits),
        "MassItem": {"anyOf": [setting, removal]},
        "MassSingle": {**single, "not": {"required": ["entries"]}},
        "MassBulk": {
            "type": "object",
            "properties": {"entries": bulk, **body_schema(Origins, limits)["properties"]},
            "required": ["entries"],
            "not": {"required": ["key"]},
        },
        "Mass": {"anyOf": [ref("MassSingle"), bulk, ref("MassBulk")]},
        "KeyedValue": {
            "type": "object",
            "properties": keyed,
            "required": ["value"],
            "not": {"anyOf": [{"required": ["entries"]}, {"required": ["key"]}]},
        },
    }


def _response_schemas() -> dict[str, Schema]:
    records = record_schemas(DataSinkOnlyRecord, IconRecord)
    only, entry = records["DataSinkOnly"], ref("DataSinkEntry")
    counts = dict.fromkeys(("accepted", "created", "updated", "unchanged", "deleted"), COUNT)
    error = {"code": STRING, "detail": STRING, "error": STRING, "errors": array(ref("Mistake"))}
    result = {
        "index": COUNT,
        "status": {"type": "integer"},
        "entry": nullable(entry),
        "effect": {"enum": ["created", "updated", "unchanged", "deleted"]},
        "error": response(error, optional={"errors"}),
    }
    results = array(response(result, optional={"entry", "effect", "error"}))
    return {
        **records,
        "DataSinkOnly": {**only, "not": {"required": ["entries"]}},
        "DataSink": {
            "type": "object",
            "properties": {**only["properties"], "entries": array(entry)},
            "required": [*only["required"], "entries"],
        },
        "MassCounts": response({**counts, "failed": COUNT, "results": results}, optional={"failed", "results"}),
        "MassResults": response({"results": results, "succeeded": COUNT, "failed": COUNT}),
        "MassResponse": {
            "anyOf": [
                entry,
                array(nullable(entry)),
                response({"entries": array(nullable(entry))}),
                ref("MassCounts"),
                ref("MassResults"),
            ]
        },
    }
