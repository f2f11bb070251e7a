"""The structure of a value without its texts, so that a person can share it.

A text is kept only if it is one of the alternatives that the program itself declares (`Literal`), or is in ``known``, such as
the names of pipelines. Every other text is replaced, so the code need not recognise secrets.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel, SecretBytes, SecretStr

TEXT, SECRET, PATH, NUMBER = "<text>", "<secret>", "<path>", "<number>"
_ITEMS = 1_000
"""The maximum number of items of a list that are shown."""
_SECRET_NAME = re.compile(r"key|pass|pwd|secret|token|auth|credential|pin\b", re.IGNORECASE)
"""Names of connector fields that may hold a secret number, such as a PIN. The number is not shown."""


def structure_of(value: object, *, known: Collection[str] = (), annotation: object = None, name: str = "") -> object:
    """Return a value as JSON data without its texts. ``annotation``: its declared type. ``name``: the name of its field."""
    match value:
        case BaseModel():
            fields = {one: field.annotation for one, field in type(value).model_fields.items()}
            return _members(value, fields, known)
        case Mapping():
            return f"<{len(value)} members>"
        case list() | tuple() | set() | frozenset():
            shown = [structure_of(one, known=known, annotation=annotation, name=name) for one in list(value)[:_ITEMS]]
            return [*shown, f"<{len(value) - _ITEMS} more>"] if len(value) > _ITEMS else shown
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        return _members(value, field_types(type(value)), known)
    return _scalar(value, known, annotation, name)


def _scalar(value: object, known: Collection[str], annotation: object, name: str) -> object:
    shown: object = f"<{type(value).__name__}>"
    match value:
        case None | bool():
            shown = value
        case SecretStr() | SecretBytes():
            shown = SECRET
        case str():
            shown = value if value in known or value in _alternatives(annotation) else TEXT
        case int() | float():
            is_declared = not {int, float}.isdisjoint(_parts(annotation)) and not _SECRET_NAME.search(name)
            shown = value if is_declared else NUMBER
        case Path():
            shown = PATH
    return shown


def event_fields(
    event: Mapping[str, object], fields: Mapping[str, object], *, known: Collection[str]
) -> dict[str, object]:
    """Return the structure of the members of a log line that are in ``fields``, by their declared types."""
    return {
        name: structure_of(event[name], known=known, annotation=annotation, name=name)
        for name, annotation in fields.items()
        if name in event
    }


def field_types(kind: type[Any]) -> dict[str, object]:
    """Return the declared types of the fields of a dataclass or struct; None for a type that can't be resolved."""
    try:
        hints: dict[str, Any] = get_type_hints(kind)
    except NameError:  # a type that is imported for type checkers only
        hints = {}
    if issubclass(kind, msgspec.Struct):
        return {name: hints.get(name) for name in kind.__struct_fields__}
    return {field.name: hints.get(field.name) for field in dataclasses.fields(kind)}


def _members(value: object, fields: Mapping[str, object], known: Collection[str]) -> dict[str, object]:
    return {
        name: structure_of(getattr(value, name, None), known=known, annotation=annotation, name=name)
        for name, annotation in fields.items()
    }


def _alternatives(annotation: object) -> set[object]:
    return {value for part in _parts(annotation) if get_origin(part) is Literal for value in get_args(part)}


def _parts(annotation: object) -> Iterator[object]:
    """Yield a type and the types in it: the members of a union, and the items of a list."""
    yield annotation
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _parts(part)
