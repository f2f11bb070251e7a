"""The header Content-Disposition, which has browsers save a file (RFC 6266, RFC 8187)."""

from __future__ import annotations

import unicodedata
from urllib.parse import quote

# attr-char of RFC 8187 without letters and digits, which `quote` never escapes
_PLAIN = "!#$&+-.^_`|~"


def attachment(file_name: str) -> str:
    """Return the value of the header; clients that support only ASCII get the most similar ASCII name."""
    decomposed = unicodedata.normalize("NFKD", file_name)
    ascii_name = "".join(
        letter if " " <= letter <= "~" and letter not in '"\\%' else "_"
        for letter in decomposed
        if not unicodedata.combining(letter)
    )
    value = f'attachment; filename="{ascii_name}"'
    return value if ascii_name == file_name else f"{value}; filename*=UTF-8''{quote(file_name, safe=_PLAIN)}"
