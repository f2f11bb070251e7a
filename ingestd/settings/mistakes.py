"""Validation of a file's values. Each mistake has its location in the file.

A sentence never quotes the value of a placeholder or of a secret setting. If validation fails, it is repeated with harmless
texts in place of such values. Only sentences of the repeated validation are shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ingestd.settings import sentences
from ingestd.settings.model import Settings
from ingestd.settings.node import ConfigLocation, FoundNode, ListNode, MappingNode, Node, Path, Scalar, dotted, find
from ingestd.settings.shape import CONNECTOR, Shape, known_keys
from ingestd.settings.validation import SENTENCE, ConnectorKind, Reading, validated
from ingestd.settings.values import Values, at

LocatedMistake: TypeAlias = tuple[ConfigLocation, str, str]
"""A mistake: its location, the dotted key, the sentence."""


def validate(
    root: Node, values: Values, options_of: Callable[[str], type[ConnectorKind]], *, secrets: bool = True
) -> tuple[Settings | None, list[LocatedMistake]]:
    """Return the settings, or None, and all mistakes. ``secrets``: see `Reading`.

    Valid settings may have mistakes, too, because the options model of a connector may ignore an unknown key.
    """
    options_of = functools.cache(options_of)
    settings, errors = _attempt(values.data, options_of, secrets=secrets)
    refused = [find(root, error["loc"]).path for error in errors if error["type"] in sentences.WRONG_KIND]
    if refused and (numbers := values.with_numbers(refused)) is not None:
        settings, errors = _attempt(numbers.data, options_of, secrets=secrets)
    shape = Shape(root=root, reading=Reading(options_of=options_of))
    return settings, [*_Report(root=root, values=values, shape=shape).mistakes(errors), *_ignored_keys(root, shape)]


def _attempt(
    data: Any, options_of: Callable[[str], type[ConnectorKind]], *, secrets: bool = True
) -> tuple[Settings | None, list[ErrorDetails]]:
    try:
        return validated(Settings, data, Reading(options_of=options_of, secrets=secrets)), []
    except ValidationError as refused:
        return None, refused.errors(include_url=False, include_input=False)


def _ignored_keys(root: Node, shape: Shape) -> Iterator[LocatedMistake]:
    """Yield a mistake for each key that a connector's options model ignores."""
    pipelines = find(root, ("pipelines",)).node
    count = len(pipelines.items) if isinstance(pipelines, ListNode) else 0
    for index in range(count):
        path: Path = ("pipelines", index, "source")
        source = find(root, path)
        options = shape.options(path)
        if source.left or not isinstance(source.node, MappingNode) or options is None:
            continue
        if options.model_config.get("extra", "ignore") != "ignore":
            continue
        for key, _ in source.node.items:
            if key.text != CONNECTOR and key.text not in known_keys(options):
                yield key.location, dotted((*path, key.text)), sentences.unknown(key.text, shape.fields(path))


class _Report:
    """Converts the validation errors of one file to mistakes."""

    def __init__(self, *, root: Node, values: Values, shape: Shape) -> None:
        self._root = root
        self._values = values
        self._shape = shape
        self._secret: set[Path] = set()
        self._harmless: dict[tuple[tuple[str | int, ...], str], ErrorDetails] = {}

    def mistakes(self, errors: list[ErrorDetails]) -> Iterator[LocatedMistake]:
        if not errors:
            return
        self._secret = {path for path in _scalars(self._root, ()) if self._shape.secret(path)}
        hidden = {*self._values.outside, *self._secret}
        shown = self._errors_without(hidden) if hidden else errors
        self._harmless = {(error["loc"], error["type"]): error for error in reversed(shown)}
        kinds: dict[Path, list[tuple[str, sentences.Context]]] = {}
        ends = [self._end(error) for error in errors]
        explained = {find(self._root, error["loc"]).path for error in errors if error["type"] == SENTENCE}
        for error in errors:
            found = find(self._root, error["loc"])
            if self._is_consequence(error, found):
                continue
            if error["type"] in sentences.WRONG_KIND and found.path in explained:
                continue  # another alternative has the kind of this value, and its sentence says what is wrong
            if error["type"] == "missing":
                yield self._missing(error, found)
            elif error["type"] == "extra_forbidden":
                names = self._shape.fields(found.path[:-1])
                yield found.key_location, dotted(found.path), sentences.unknown(str(error["loc"][-1]), names)
            elif sentences.expected(error["type"], error.get("ctx", {})) is None:
                yield self._location_of(error, found), dotted(found.path), self._sentence(error, found)
            elif not any(len(end) > len(found.path) and end[: len(found.path)] == found.path for end in ends):
                # Otherwise, a mistake below this path shows which of several alternatives was intended.
                kinds.setdefault(found.path, []).append((error["type"], error.get("ctx", {})))
        for path, wrong in kinds.items():
            found = find(self._root, path)
            yield found.node.location, dotted(path), sentences.mismatch(wrong, found, hidden=path in self._secret)

    def _errors_without(self, hidden: set[Path]) -> list[ErrorDetails]:
        """Return the errors of two validations without secret values. In the first validation, hidden URLs keep their form."""
        readings = (self._values.harmless(hidden, addresses=addresses) for addresses in (True, False))
        return [error for data in readings for error in _attempt(data, self._shape.reading.options_of)[1]]

    def _end(self, error: ErrorDetails) -> Path:
        found = find(self._root, error["loc"])
        return (*found.path, error["loc"][-1]) if error["type"] == "missing" else found.path

    def _is_consequence(self, error: ErrorDetails, found: FoundNode) -> bool:
        """Return True for an error that only follows from an unfilled placeholder, which is reported separately."""
        if found.path in self._values.unfilled:
            return True
        quotes = error["type"] in sentences.QUOTES_THE_VALUE
        return quotes and any(path[: len(found.path)] == found.path for path in self._values.unfilled)

    def _missing(self, error: ErrorDetails, found: FoundNode) -> LocatedMistake:
        key = str(error["loc"][-1])
        path = (*found.path, key)
        sentence = sentences.missing(key, self._shape.field(path))
        if key == CONNECTOR and isinstance(found.node, MappingNode):
            # Without a connector, the permitted keys of the source are not known, so no key is reported as unknown.
            for name, _ in found.node.items:
                if hint := sentences.misspelled(name.text, key):
                    return name.location, dotted(path), f"{sentence}{hint}"
        return found.node.location, dotted(path), sentence

    def _location_of(self, error: ErrorDetails, found: FoundNode) -> ConfigLocation:
        position = error.get("ctx", {}).get("position")
        # The offset applies to the file only if the text comes from the file.
        if (
            isinstance(position, int)
            and isinstance(found.node, Scalar)
            and at(self._values.data, found.path) == found.node.text
        ):
            return found.node.location_of(position)
        return found.node.location

    def _sentence(self, error: ErrorDetails, found: FoundNode) -> str:
        harmless = self._harmless.get((error["loc"], error["type"]))
        if harmless is None:
            field = self._shape.field(found.path)
            is_empty = at(self._values.data, found.path) == ""
            return sentences.withheld(field, self._values.outside.get(found.path), is_empty=is_empty)
        return sentences.from_message(harmless["type"], harmless["msg"], harmless.get("ctx", {}))


def _scalars(node: Node, path: Path) -> Iterator[Path]:
    match node:
        case Scalar():
            yield path
        case ListNode():
            for index, item in enumerate(node.items):
                yield from _scalars(item, (*path, index))
        case MappingNode():
            for key, item in node.items:
                yield from _scalars(item, (*path, key.text))
