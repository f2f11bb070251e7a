"""How a CSV file is written: what parts fields, what encloses them, what begins a comment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One ASCII character each; ``quote`` and ``comment`` are empty where the file knows neither.

    Two quotes inside quotes stand for one. A line that begins with ``comment`` where a record would begin is a blank one. An
    empty ``delimiter`` is still to be found out.
    """

    delimiter: str = ","
    quote: str = '"'
    comment: str = ""

    @property
    def delimiter_name(self) -> str:
        """The delimiter as a person names it."""
        return {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}.get(
            self.delimiter, self.delimiter
        )


COMMA = Dialect()
UNDETECTED = Dialect(delimiter="")
