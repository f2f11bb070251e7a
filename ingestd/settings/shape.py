"""The keys and fields that the models permit at a path of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, PlainValidator, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from ingestd.settings.model import Settings, SourceSettings
from ingestd.settings.node import Node, Path, Scalar, find
from ingestd.settings.validation import ConnectorUnusable, Reading

CONNECTOR = "connector"


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a file may have, including the options of the connectors that it names."""

    root: Node
    reading: Reading

    def fields(self, path: Path) -> dict[str, FieldInfo]:
        """Return the keys of the mapping at ``path``; empty if all keys are permitted."""
        models: list[type[BaseModel]] = [Settings]
        for position, step in enumerate(path):
            if isinstance(step, int):
                continue
            fields = [field for model in models for name, field in known_keys(model).items() if name == step]
            models = [model for field in fields for model in _models(field)]
            if SourceSettings in models:
                options = self.options(path[: position + 1])
                models = [options] if options is not None else []
        found: dict[str, FieldInfo] = {}
        for model in models:
            found |= known_keys(model)
        if path and path[-1] == "source":
            found = {CONNECTOR: SourceSettings.model_fields[CONNECTOR], **found}
        return found

    def field(self, path: Path) -> FieldInfo | None:
        """Return the field of the setting at ``path``."""
        while path and isinstance(path[-1], int):
            path = path[:-1]
        return self.fields(path[:-1]).get(str(path[-1])) if path else None

    def secret(self, path: Path) -> bool:
        """Return True if the setting at ``path`` is secret."""
        field = self.field(path)
        return field is not None and any(kind in {SecretStr, SecretBytes} for kind in _parts(field.annotation))

    def options(self, source: Path) -> type[BaseModel] | None:
        """Return the options model of the source at ``source``, if its connector exists."""
        found = find(self.root, (*source, CONNECTOR))
        if not isinstance(found.node, Scalar) or found.left:
            return None
        try:
            return self.reading.options_of(found.node.text).Options
        except ConnectorUnusable:
            return None


def known_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of ``model`` by their names in a file."""
    return {
        field.validation_alias if isinstance(field.validation_alias, str) else name: field
        for name, field in model.model_fields.items()
    }


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    annotation: Any = field.annotation
    for mark in field.metadata:
        if isinstance(mark, PlainValidator):
            annotation = mark.json_schema_input_type
    for kind in _parts(annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and all its parts."""
    arguments = get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _parts(argument)
