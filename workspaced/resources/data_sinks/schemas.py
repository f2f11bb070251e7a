"""Schemas of responses about sinks and entries that types cannot say: whole sinks, and the forms of mass updates."""

from __future__ import annotations

from workspaced.core.json_schema import COUNT, STRING, Schema, array, nullable, record_schemas, ref, response
from workspaced.resources.data_sinks.records import DataSinkEntryRecord, DataSinkOnlyRecord, IconRecord
from workspaced.resources.data_sinks.rules import request_schemas
from workspaced.settings.model import Limits


def schemas(limits: Limits) -> dict[str, Schema]:
    """Return the schemas by their names among the document's components."""
    records = record_schemas(DataSinkEntryRecord, DataSinkOnlyRecord, IconRecord)
    only, entry = records["DataSinkOnly"], ref("DataSinkEntry")
    counts = dict.fromkeys(("accepted", "created", "updated", "unchanged", "deleted"), COUNT)
    error = {"code": STRING, "detail": STRING, "error": STRING, "errors": array(ref("Mistake"))}
    result = {
        "index": COUNT,
        "status": {"type": "integer"},
        "entry": nullable(entry),
        "error": response(error, optional={"errors"}),
    }
    results = array(response(result, optional={"entry", "error"}))
    return {
        **records,
        **request_schemas(limits),
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
