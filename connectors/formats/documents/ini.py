"""The parser of INI files: one pass over the lines by the rules of configparser, except for colons in names and damaged sections.

configparser takes a damaged section for a name, so that the names below it belong to the section above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connectors.formats.documents.parser import DocumentInvalid, DocumentValue

_SECTION = re.compile(r"\[(.+?)\]\s*(?:[#;].*)?")
_COMMENT = ("#", ";")
_SIGN = re.compile(r"=|:(?=\s)")
_COLON = re.compile(":")


def parse_ini(text: str) -> DocumentValue:
    """Parse an INI file: return the names before the first section, and a mapping for each section.

    A name ends at an equals sign, or at a colon before white space. In a line without an equals sign, it ends at the first
    colon. A line that is indented more than the name above it continues the value of this name. A name without a sign has
    no value. Values are not interpolated.

    Raises:
        DocumentInvalid: the text is no INI file, or a name occurs twice.
    """
    reader = _IniReader()
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        reader.add(line, number)
    return reader.end()


class _IniReader:
    """The state of the parser after a line: the current section, and the name of the value that may continue."""

    def __init__(self) -> None:
        self._found: dict[str, DocumentValue] = {}
        self._names = self._found
        self._values: dict[str, list[str]] = {}
        """The lines of the values of the current section, by name."""
        self._name, self._indent = "", 0

    def add(self, line: str, number: int) -> None:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if stripped.startswith(_COMMENT):
            return
        if not stripped or (self._name and depth > self._indent):
            self._continue(stripped, number)
            return
        self._indent = depth
        if stripped.startswith("["):
            section = _SECTION.fullmatch(stripped)
            if section is None:
                raise DocumentInvalid(f"line {number} begins like a section, but is not one")
            self._close()
            self._require_new(section[1], self._found, number)
            self._names = self._found[section[1]] = {}
            self._name, self._values = "", {}
            return
        self._name, value = _split(stripped, number)
        self._require_new(self._name, self._names, number)
        self._names[self._name] = None
        if value is not None:
            self._values[self._name] = [value]

    def end(self) -> DocumentValue:
        """Return the names before the first section, and the sections."""
        self._close()
        return self._found

    def _continue(self, text: str, number: int) -> None:
        if self._name in self._values:
            self._values[self._name].append(text)
        elif text:
            raise DocumentInvalid(
                f"line {number} is indented below {self._name!r}, which has no value that it could continue"
            )

    def _close(self) -> None:
        """Add the values of the current section to its names."""
        for name, lines in self._values.items():
            self._names[name] = "\n".join(lines).rstrip()

    def _require_new(self, name: str, names: Mapping[str, DocumentValue], number: int) -> None:
        if name in names:
            raise DocumentInvalid(f"it names {name!r} twice (line {number})")


def _split(line: str, number: int) -> tuple[str, str | None]:
    """Return name and value of a line; the value is None if the line has no sign."""
    sign = (_SIGN if "=" in line else _COLON).search(line)
    if sign is None:
        return line, None
    name = line[: sign.start()].rstrip()
    if not name:
        raise DocumentInvalid(f"line {number} has no name before {sign[0]!r}")
    return name, line[sign.end() :].strip()
