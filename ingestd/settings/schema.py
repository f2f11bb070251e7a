"""The JSON Schema (2020-12) of the configuration, with the options of each connector, for editors and documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from ingestd.settings.model import Settings, SourceSettings
from ingestd.settings.shape import CONNECTOR
from ingestd.settings.validation import ConnectorKind, ConnectorUnusable

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLACEHOLDER = {
    "type": "string",
    "pattern": r"\$\{(env|file|credential):[^}]+\}",
    "description": "A value from outside this file: an environment variable, a file or a systemd credential.",
}
_SOURCE = "SourceSettings"
_RESTRICTIONS = {"enum", "const", "pattern"}
_ABOUT = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")


def configuration_schema(connectors: Mapping[str, type[ConnectorKind]]) -> dict[str, Any]:
    """Return the schema of a configuration file that uses ``connectors``.

    A setting that takes a number, a boolean or one of several words also takes a placeholder.

    Raises:
        ConnectorUnusable: a connector's options can't be described.
    """
    schema = Settings.model_json_schema(ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = schema.pop("$defs")
    definitions.pop("BaseModel")
    choices = []
    for name in sorted(connectors):
        definitions |= _source(name, connectors[name])
        choices.append({"$ref": f"#/$defs/{name}"})
    definitions[_SOURCE] = {
        "description": definitions[_SOURCE]["description"],
        **({"oneOf": choices} if choices else {"type": "object"}),
    }
    definitions = {name: _with_placeholders(_untitled(definition)) for name, definition in definitions.items()}
    definitions["Placeholder"] = dict(PLACEHOLDER)
    return {
        "$schema": DIALECT,
        "title": "Configuration of ingestd",
        **_with_placeholders(_untitled(schema)),
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text(connectors: Mapping[str, type[ConnectorKind]]) -> str:
    """Return the schema as the text of a file, indented and with a line end; equal connectors give equal texts."""
    return json.dumps(configuration_schema(connectors), indent=2, ensure_ascii=False) + "\n"


def _source(name: str, connector: type[ConnectorKind]) -> dict[str, Any]:
    """Return the definitions of one connector: ``connector: name``, its options, and the models that the options use."""
    try:
        options = connector.Options.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
    except PydanticInvalidForJsonSchema as error:
        raise ConnectorUnusable(f"The options of the connector '{name}' can't be described: {error}") from error
    inner = {f"{name}.{model}": definition for model, definition in options.pop("$defs", {}).items()}
    # Most options models have no docstring, so the docstring of the connector's class is used.
    description = options.pop("description", None) or (connector.__doc__ or "").strip().partition("\n")[0]
    about = SourceSettings.model_fields[CONNECTOR].description
    return {
        name: {
            **({"description": description} if description else {}),
            **options,
            "type": "object",
            "properties": {CONNECTOR: {"const": name, "description": about}, **options.get("properties", {})},
            "required": [CONNECTOR, *options.get("required", [])],
            "additionalProperties": options.get("additionalProperties", False),
        },
        **inner,
    }


def _untitled(schema: Any) -> Any:
    """Return the schema without the titles that pydantic generates; a property named ``title`` stays."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _untitled(value) for key, value in part.items()} if name == "properties" else _untitled(part)
        for name, part in schema.items()
        if name != "title"
    }


def _with_placeholders(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with a placeholder permitted for each value that is not free text."""
    changed = dict(schema)
    if "properties" in schema:
        # An editor selects the other properties by the connector, so the connector cannot be a placeholder.
        changed["properties"] = {
            name: part if name == CONNECTOR and "const" in part else _permit_placeholder(part)
            for name, part in schema["properties"].items()
        }
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            changed[word] = _permit_placeholder(schema[word])
    return changed


def _permit_placeholder(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one value, with a placeholder permitted unless the value is free text."""
    reference = {"$ref": "#/$defs/Placeholder"}
    if "anyOf" in part:
        choices = [_with_placeholders(choice) for choice in part["anyOf"]]
        free = any(choice.get("type") == "string" and not _RESTRICTIONS & choice.keys() for choice in choices)
        restricted = any(_is_restricted(choice) for choice in choices)
        return {**part, "anyOf": [*choices, reference] if restricted and not free else choices}
    if not _is_restricted(part):
        return _with_placeholders(part)
    about = {word: part[word] for word in _ABOUT if word in part}
    return {**about, "anyOf": [{word: value for word, value in part.items() if word not in about}, reference]}


def _is_restricted(part: dict[str, Any]) -> bool:
    """Return True for a number, a boolean, or text with a list or a pattern of permitted values."""
    return part.get("type") in {"integer", "number", "boolean"} or bool(_RESTRICTIONS & part.keys())
