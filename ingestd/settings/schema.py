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
    "description": "A value kept outside this file: an environment variable, a file, a systemd credential.",
}
_SOURCE = "SourceSettings"
_NARROWING = {"enum", "const", "pattern"}
_ABOUT = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")


def configuration_schema(connectors: Mapping[str, type[ConnectorKind]]) -> dict[str, Any]:
    """The schema of a configuration file; ``connectors`` are those that it may name, in the order of their names here.

    A setting that takes a number, a truth value or one of a few words also takes a placeholder.

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
    definitions = {name: _open(_untitled(definition)) for name, definition in definitions.items()}
    definitions["Placeholder"] = dict(PLACEHOLDER)
    return {
        "$schema": DIALECT,
        "title": "Configuration of ingestd",
        **_open(_untitled(schema)),
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text(connectors: Mapping[str, type[ConnectorKind]]) -> str:
    """The same as a file: UTF-8, indented, with a line end; the same connectors give the same bytes."""
    return json.dumps(configuration_schema(connectors), indent=2, ensure_ascii=False) + "\n"


def _source(name: str, connector: type[ConnectorKind]) -> dict[str, Any]:
    """The definitions of one connector: its options beside ``connector: name``, and what they refer to."""
    try:
        options = connector.Options.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
    except PydanticInvalidForJsonSchema as error:
        raise ConnectorUnusable(f"The options of the connector '{name}' can't be described: {error}") from error
    inner = {f"{name}.{model}": definition for model, definition in options.pop("$defs", {}).items()}
    # A connector's class says what it does; its options model mostly has nothing to add.
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
    """Without the titles that pydantic makes of the names; a property that is called title stays."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _untitled(value) for key, value in part.items()} if name == "properties" else _untitled(part)
        for name, part in schema.items()
        if name != "title"
    }


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """Let a placeholder stand wherever a value of another kind, or of a few words, is asked for."""
    changed = dict(schema)
    if "properties" in schema:
        # The connector selects what else is allowed, so an editor must be able to read it.
        changed["properties"] = {
            name: part if name == CONNECTOR and "const" in part else _opened(part)
            for name, part in schema["properties"].items()
        }
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            changed[word] = _opened(schema[word])
    return changed


def _opened(part: dict[str, Any]) -> dict[str, Any]:
    reference = {"$ref": "#/$defs/Placeholder"}
    if "anyOf" in part:
        choices = [_open(choice) for choice in part["anyOf"]]
        free = any(choice.get("type") == "string" and not _NARROWING & choice.keys() for choice in choices)
        narrow = any(_narrow(choice) for choice in choices)
        return {**part, "anyOf": [*choices, reference] if narrow and not free else choices}
    if not _narrow(part):
        return _open(part)
    about = {word: part[word] for word in _ABOUT if word in part}
    return {**about, "anyOf": [{word: value for word, value in part.items() if word not in about}, reference]}


def _narrow(part: dict[str, Any]) -> bool:
    return part.get("type") in {"integer", "number", "boolean"} or bool(_NARROWING & part.keys())
