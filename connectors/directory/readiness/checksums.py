"""Checksum lists as `sha256sum` writes them. Performs no I/O."""

from __future__ import annotations

import re

_HEX = r"(?P<hex>[0-9a-fA-F]{64})"
_BARE = re.compile(_HEX)
_LINE = re.compile(rf"\\?{_HEX} [ *](?P<name>.+)")
_BSD = re.compile(rf"SHA256 \((?P<name>.+)\) = {_HEX}")


def find_checksum(text: str, base: str) -> str | None:
    """Return the SHA-256 of the file ``base``, in lower case, from a sidecar's text; None if the text has none for it.

    The text is only a hash, or lines with a hash and a name (as ``sha256sum`` writes them, also with ``--tag``).
    """
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) == 1 and (bare := _BARE.fullmatch(lines[0])):
        return bare["hex"].lower()
    return next(
        (sha256 for name, sha256 in map(parse_checksum_line, lines) if sha256 and name.rpartition("/")[2] == base), None
    )


def parse_checksum_line(line: str) -> tuple[str, str]:
    """Return the name and the SHA-256 (in lower case) of a line. The hash is empty if the line is only a name."""
    found = _LINE.fullmatch(line) or _BSD.fullmatch(line)
    return (found["name"], found["hex"].lower()) if found else (line, "")
