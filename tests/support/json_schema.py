"""A validator for the part of JSON Schema 2020-12 that the configuration's schema uses. Other keywords are an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_ABOUT = {
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "writeOnly",
    "readOnly",
    "discriminator",
}
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_SIMPLE: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "pattern": ("string", lambda value, wanted: re.search(wanted, value) is not None),
    "minLength": ("string", lambda value, wanted: len(value) >= wanted),
    "maxLength": ("string", lambda value, wanted: len(value) <= wanted),
    "minItems": ("array", lambda value, wanted: len(value) >= wanted),
    "maxItems": ("array", lambda value, wanted: len(value) <= wanted),
    "minimum": ("number", lambda value, wanted: value >= wanted),
    "maximum": ("number", lambda value, wanted: value <= wanted),
    "exclusiveMinimum": ("number", lambda value, wanted: value > wanted),
    "exclusiveMaximum": ("number", lambda value, wanted: value < wanted),
    "minProperties": ("object", lambda value, wanted: len(value) >= wanted),
    "required": ("object", lambda value, wanted: set(wanted) <= value.keys()),
}
_NESTED: Mapping[str, Callable[[Any, Any, Schema, Schema], bool]] = {
    "$ref": lambda value, name, _, root: fits(value, root["$defs"][name.removeprefix("#/$defs/")], root),
    "type": lambda value, kind, *_: _KINDS[kind](value),
    "const": lambda value, wanted, *_: bool(value == wanted),
    "enum": lambda value, wanted, *_: value in wanted,
    "anyOf": lambda value, choices, _, root: any(fits(value, choice, root) for choice in choices),
    "oneOf": lambda value, choices, _, root: sum(fits(value, choice, root) for choice in choices) == 1,
    "items": lambda value, part, _, root: not isinstance(value, list) or all(fits(item, part, root) for item in value),
    "properties": lambda value, parts, _, root: (
        not isinstance(value, dict) or all(fits(value[name], parts[name], root) for name in parts if name in value)
    ),
    "additionalProperties": lambda value, part, schema, root: (
        not isinstance(value, dict)
        or all(
            part if isinstance(part, bool) else fits(item, part, root)
            for name, item in value.items()
            if name not in schema.get("properties", {})
        )
    ),
}


def fits(value: Any, schema: Schema, root: Schema) -> bool:
    """Return whether ``value`` is valid under ``schema``. References in ``schema`` are to definitions in ``root``."""
    return all(_fits(value, word, schema, root) for word in schema)


def _fits(value: Any, word: str, schema: Schema, root: Schema) -> bool:
    if word in _SIMPLE:
        kind, holds = _SIMPLE[word]
        return not _KINDS[kind](value) or holds(value, schema[word])
    if word in _NESTED:
        return _NESTED[word](value, schema[word], schema, root)
    if word in _ABOUT:
        return True
    raise NotImplementedError(word)
