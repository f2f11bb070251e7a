"""Templates: text with field names in braces, such as ``{part_number}.mass``. ``{{`` and ``}}`` are literal braces."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

COLUMN = "column"
"""In a mapping of columns, the placeholder for the name of the column that makes the entry."""

_INNER = f"{{{COLUMN}}}"


class TemplateError(ValueError):
    """A template with a syntax error; ``position`` is the 0-based offset of the mistake in its text."""

    def __init__(self, sentence: str, position: int) -> None:
        self.position = position
        super().__init__(sentence)


class Literal(msgspec.Struct, frozen=True):
    """Literal text."""

    text: str


class Field(msgspec.Struct, frozen=True):
    """The value of a record's field, exactly as in the source. A name may contain ``{column}``: ``units.{column}``."""

    name: str

    def bind(self, values: Mapping[str, str]) -> Literal | Field:
        """Return the field's fixed text if ``values`` has it; else the field, with ``{column}`` in its name replaced."""
        if self.name in values:
            return Literal(values[self.name])
        return Field(self.name.replace(_INNER, values[COLUMN])) if COLUMN in values and _INNER in self.name else self


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed template. No two literals are adjacent."""

    text: str
    parts: tuple[Literal | Field, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names in braces, in order of first use."""
        return tuple(dict.fromkeys(part.name for part in self.parts if isinstance(part, Field)))

    def bind(self, values: Mapping[str, str]) -> Template:
        """Return the template with the fields in ``values`` replaced by fixed text."""
        parts: list[Literal | Field] = []
        for part in self.parts:
            bound = part.bind(values) if isinstance(part, Field) else part
            if isinstance(bound, Literal) and parts and isinstance(parts[-1], Literal):
                parts[-1] = Literal(parts[-1].text + bound.text)
            else:
                parts.append(bound)
        return Template(text=self.text, parts=tuple(parts))


_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*|[^{}]+\{column\}[^{}]*)\}|(?P<stray>[{}])")


def parse_template(text: str) -> Template:
    """Parse ``text``.

    Raises:
        TemplateError: a brace has no matching brace, or braces contain no name.
    """
    parts: list[Literal | Field] = []
    literal = ""
    end = 0
    for token in _TOKEN.finditer(text):
        literal += text[end : token.start()]
        end = token.end()
        if token["stray"]:
            other = "}" if token["stray"] == "{" else "{"
            raise TemplateError(
                f"'{token['stray']}' has no '{other}'; write '{token['stray'] * 2}' for the character itself",
                token.start(),
            )
        if token["name"] is None:
            literal += token[0][0]
            continue
        if not token["name"].strip():
            raise TemplateError("'{}' names no field; write the name of a column between the braces", token.start())
        if literal:
            parts.append(Literal(literal))
            literal = ""
        parts.append(Field(token["name"]))
    literal += text[end:]
    if literal:
        parts.append(Literal(literal))
    return Template(text=text, parts=tuple(parts))
