"""The dialect of a CSV file: delimiter, quote and comment character."""

from __future__ import annotations

import msgspec


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One ASCII character each; ``quote`` and ``comment`` are empty if the file has none.

    Inside quotes, two quotes mean one. A line that begins with ``comment``, where a record can begin, counts as blank. An empty
    ``delimiter`` has to be detected.
    """

    delimiter: str = ","
    quote: str = '"'
    comment: str = ""

    @property
    def delimiter_name(self) -> str:
        """The delimiter in words."""
        return {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}.get(
            self.delimiter, self.delimiter
        )


COMMA = Dialect()
UNDETECTED = Dialect(delimiter="")
