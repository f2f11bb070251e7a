"""JSON Schemas (2020-12) in few words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]

_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f"
ONE_LINE: Final = f"^[^{_CONTROLS}]*$"
"""Without control characters."""

NOT_BLANK: Final = rf"^[^{_CONTROLS}]*[^\s{_CONTROLS}][^{_CONTROLS}]*$"
"""One line that is more than whitespace."""

TRIMMED: Final = rf"^[^\s{_CONTROLS}]([^{_CONTROLS}]*[^\s{_CONTROLS}])?$"
"""One line without whitespace at its ends."""

FLAG: Final[Schema] = {"type": "boolean"}
UUID: Final[Schema] = {"type": "string", "format": "uuid"}
STAMP: Final[Schema] = {"type": "string", "format": "date-time"}
"""In answers: UTC with milliseconds, ``2026-01-31T12:00:00.000Z``."""

COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NAME: Final[Schema] = {"type": "string"}
NAMES: Final[Schema] = {"type": "array", "items": NAME}
OBJECT: Final[Schema] = {"type": "object"}


def text(
    *, longest: int | None = None, shortest: int = 0, pattern: str | None = None, about: str = "", **more: object
) -> Schema:
    """A string; lengths are in code points."""
    schema: Schema = {"type": "string"}
    if shortest:
        schema["minLength"] = shortest
    if longest is not None:
        schema["maxLength"] = longest
    if pattern:
        schema["pattern"] = pattern
    return {**schema, **({"description": about} if about else {}), **more}


def texts(*, most: int, longest: int, item: Schema | None = None, about: str = "") -> Schema:
    """A list of strings in a request; one string stands for a list of one."""
    one = item or text(longest=longest)
    schema: Schema = {"anyOf": [{"type": "array", "items": one, "maxItems": most}, one]}
    return {**schema, **({"description": about} if about else {})}


def listed(item: Schema, *, least: int = 0, most: int | None = None) -> Schema:
    """An array."""
    schema: Schema = {"type": "array", "items": item}
    if least:
        schema["minItems"] = least
    if most is not None:
        schema["maxItems"] = most
    return schema


def choice(*values: str, about: str = "") -> Schema:
    """One of some words."""
    return {"type": "string", "enum": list(values), **({"description": about} if about else {})}


def told(schema: Schema, about: str) -> Schema:
    """The same with a description."""
    return {**schema, "description": about}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    about = {key: schema[key] for key in ("description",) if key in schema}
    bare = {key: value for key, value in schema.items() if key not in about}
    return {"anyOf": [bare, {"type": "null"}], **about}


def given(members: Mapping[str, Schema], *, required: Collection[str] = ()) -> Schema:
    """An object of a request: what is not required may be absent or null. Further members are ignored."""
    properties = {name: schema if name in required else nullable(schema) for name, schema in members.items()}
    return {
        "type": "object",
        "properties": properties,
        **({"required": [name for name in members if name in required]} if required else {}),
    }


def record(members: Mapping[str, Schema], *, optional: Collection[str] = ()) -> Schema:
    """An object of an answer: every member is there unless ``optional``. Further members may come with later versions."""
    return {
        "type": "object",
        "properties": dict(members),
        "required": [name for name in members if name not in optional],
    }


def ref(name: str) -> Schema:
    """A schema of the document's components."""
    return {"$ref": f"#/components/schemas/{name}"}
