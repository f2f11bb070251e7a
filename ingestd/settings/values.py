"""The tree of a file as plain data with filled placeholders."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ingestd.settings.node import ConfigLocation, ListNode, MappingNode, Node, Path, Scalar, resolve
from ingestd.settings.secrets import PlaceholderError, Placeholders


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The data to validate, and the values in it that came from placeholders.

    ``outside``: the paths of values from placeholders, each with its text in the file.
    ``unfilled``: the paths of placeholders that could not be filled, each with its location and the reason.
    """

    data: Any = field(repr=False)
    outside: dict[Path, str]
    unfilled: dict[Path, tuple[ConfigLocation, str]]

    def with_numbers(self, paths: Iterable[Path]) -> Values | None:
        """Return the values with placeholders at ``paths`` resolved like unquoted YAML; None if no value changes.

        A filled placeholder is always text. Callers use this method for settings that need a number or a boolean.
        """
        data = copy.deepcopy(self.data)
        changed = False
        for path in paths:
            text = at(data, path)
            value = resolve(text.strip()) if isinstance(text, str) and path in self.outside else text
            if value is not text and value is not None and not isinstance(value, str):
                put(data, path, value)
                changed = True
        return Values(data=data, outside=self.outside, unfilled=self.unfilled) if changed else None

    def without_secrets(self) -> Values:
        """Return the values for a command that only reads the state file, calls no service and opens no source.

        Unfilled values of the service and the listener's token are removed or replaced. Unfilled values of sources stay. All
        other unfilled values remain mistakes.
        """
        data, unfilled = copy.deepcopy(self.data), dict(self.unfilled)
        for path in self.unfilled:
            match path:
                case ("service", ("url" | "api_key") as name):
                    put(data, path, _REPLACEMENTS[name])
                case ("listen", "token"):
                    put(data, path, _REPLACEMENTS["token"])
                case ("service", str()):
                    del data["service"][path[1]]
                case ("pipelines", int(), "source", str() as name, *_) if name != "connector":
                    pass  # `SourceSettings` accepts unfilled options
                case _:
                    continue
            del unfilled[path]
        return Values(data=data, outside=self.outside, unfilled=unfilled)

    def harmless(self, hidden: Iterable[Path], *, addresses: bool) -> Any:
        """Return the data without secrets: at ``hidden``, a placeholder is unfilled, and any other text becomes a word.

        With ``addresses``, a hidden URL becomes a URL of the same form, so that other mistakes in the URL are still found.
        """
        data = copy.deepcopy(self.data)
        for path in hidden:
            value = at(data, path)
            if isinstance(value, str):
                plain = self.outside.get(path, "hidden")
                put(data, path, _masked(value) if addresses and "://" in value else plain)
        return data


_REPLACEMENTS = {"url": "http://not-filled-in.invalid", "api_key": "not-filled-in", "token": "token-not-filled-in"}


def _masked(url: str) -> str:
    """Return a URL with the scheme and the separators of ``url``, but with other letters and digits."""
    scheme, mark, rest = url.partition("://")
    known = scheme if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,30}", scheme) else "hidden"
    return known + mark + re.sub(r"[^/:@.?=&]", lambda found: "1" if found[0].isdigit() else "x", rest)


def filled(root: Node, placeholders: Placeholders) -> Values:
    """Convert a tree to data. A placeholder that cannot be filled remains unchanged."""
    outside: dict[Path, str] = {}
    unfilled: dict[Path, tuple[ConfigLocation, str]] = {}

    def scalar(node: Scalar, path: Path) -> Any:
        value = node.value
        if not isinstance(value, str):
            return value
        try:
            text = placeholders.fill(value)
        except PlaceholderError as error:
            unfilled[path] = (node.location_of(error.position), str(error))
            outside[path] = node.text
            return value
        if text.secret:
            outside[path] = node.text
        return text.text

    data = _data(root, (), scalar)
    return Values(data=data, outside=outside, unfilled=unfilled)


def _data(node: Node, path: Path, scalar: Callable[[Scalar, Path], Any]) -> Any:
    match node:
        case Scalar():
            return scalar(node, path)
        case ListNode():
            return [_data(item, (*path, index), scalar) for index, item in enumerate(node.items)]
        case MappingNode():
            return {key.text: _data(item, (*path, key.text), scalar) for key, item in node.items}


def at(data: Any, path: Path) -> Any:
    """Return the value at ``path``."""
    for step in path:
        data = data[step]
    return data


def put(data: Any, path: Path, value: Any) -> None:
    """Replace the value at ``path``, which is not the root."""
    if path:
        at(data, path[:-1])[path[-1]] = value
