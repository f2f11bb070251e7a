"""JSON Schemas (2020-12): generated from response records, or made by short constructors.

This module performs no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

Schema: TypeAlias = dict[str, Any]

_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f"
ONE_LINE: Final = f"^[^{_CONTROLS}]*$"
"""A string without control characters."""

NOT_BLANK: Final = rf"^[^{_CONTROLS}]*[^\s{_CONTROLS}][^{_CONTROLS}]*$"
"""One line that has more than whitespace."""

TRIMMED: Final = rf"^[^\s{_CONTROLS}]([^{_CONTROLS}]*[^\s{_CONTROLS}])?$"
"""One line without whitespace at its ends."""

FLAG: Final[Schema] = {"type": "boolean"}
UUID: Final[Schema] = {"type": "string", "format": "uuid"}
TIMESTAMP: Final[Schema] = {"type": "string", "format": "date-time"}
"""In responses: UTC with milliseconds, ``2026-01-31T12:00:00.000Z``."""

COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
STRING: Final[Schema] = {"type": "string"}
OBJECT: Final[Schema] = {"type": "object"}

Uuid: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Timestamp: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
RawNumber: TypeAlias = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "number"})]
RawStrings: TypeAlias = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "array", "items": STRING})]
RawObject: TypeAlias = Annotated[msgspec.Raw, Meta(extra_json_schema=OBJECT)]
"""Members of response records. A ``Raw`` member is stored JSON, which is sent without a change."""


def record_schemas(*records: type[msgspec.Struct]) -> dict[str, Schema]:
    """Return the component schemas of response records and of the records inside them.

    ``DeliveryRecord`` is published as ``Delivery``. A member may be absent from a response if its default is UNSET.
    """
    _, found = msgspec.json.schema_components(records, ref_template="#/components/schemas/{name}")
    return {name.removesuffix("Record"): _published(schema) for name, schema in found.items()}


def is_record(kind: object) -> bool:
    """Return whether ``kind`` is a class of records."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def public_name(kind: type) -> str:
    """Return the name under which a class of records or of bodies is published."""
    return kind.__name__.removesuffix("Record")


def _published(value: Any) -> Any:
    """Return the schema without the titles of classes, and with published names in its references."""
    if isinstance(value, list):
        return [_published(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _published(item) for key, item in value.items() if key != "title" or isinstance(item, dict)}
    return {**kept, "$ref": kept["$ref"].removesuffix("Record")} if "$ref" in kept else kept


def string(
    *, longest: int | None = None, shortest: int = 0, pattern: str | None = None, description: str = ""
) -> Schema:
    """Return the schema of a string; lengths are in code points."""
    schema: Schema = {"type": "string"}
    if shortest:
        schema["minLength"] = shortest
    if longest is not None:
        schema["maxLength"] = longest
    if pattern:
        schema["pattern"] = pattern
    return described(schema, description)


def array(item: Schema, *, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of an array."""
    schema: Schema = {"type": "array", "items": item}
    if least:
        schema["minItems"] = least
    if most is not None:
        schema["maxItems"] = most
    return schema


def choice(*values: str) -> Schema:
    """Return the schema of a string that is one of ``values``."""
    return {"type": "string", "enum": list(values)}


def described(schema: Schema, description: str) -> Schema:
    """Return the schema with a description, if there is one."""
    return {**schema, "description": description} if description else schema


def nullable(schema: Schema) -> Schema:
    """Return the schema of a value that has ``schema`` or is null."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    return described({"anyOf": [bare, {"type": "null"}]}, schema.get("description", ""))


def response(members: Mapping[str, Schema], *, optional: Collection[str] = ()) -> Schema:
    """Return the schema of an object in a response. Later versions may add members."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": dict(members), "required": required}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the document's components."""
    return {"$ref": f"#/components/schemas/{name}"}
