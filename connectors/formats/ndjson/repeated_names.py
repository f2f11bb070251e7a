"""Repeated names in a JSON object: every decoder keeps the last value without a word, so they are found beside it.

The colon behind a name follows a quote or white space. So the number of such pairs is at least the number of members, and a text
with as many pairs as decoded members repeats no name. Pairs are counted in a block at once, which takes less time than decoding.
Only a text with more pairs is parsed again, such as one with a value that starts with a colon.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SPACES = (b" ", b"\t", b"\n", b"\r")


class NameRepeated(ValueError):
    """An object has a name twice. The message is the end of a sentence."""


def find_unsure(texts: Sequence[bytes], members: Sequence[int]) -> list[bytes]:
    """Return the texts that may repeat a name. ``members``: the number of decoded members of each, at every depth."""
    if _most_members(b"".join(texts)) == sum(members):  # none has fewer pairs than members, so each has as many
        return []
    return [text for text, count in zip(texts, members, strict=True) if _most_members(text) != count]


def require_unique_names(text: bytes, members: int = -1) -> None:
    """Check that no object in a valid JSON text has a name twice. ``members``: the number of decoded members, if it is known.

    Raises:
        NameRepeated: one has.
        RecursionError: the text is nested too deeply.
    """
    if _most_members(text) != members:
        _DECODER.decode(text.decode("utf-8", "replace"))


def _most_members(text: bytes) -> int:
    r"""Return an upper limit for the number of members. ``\":`` is in a text, unless the quote ends a name with a backslash."""
    # The search for one byte is many times faster than that for two.
    pairs = text.count(b'":') + sum(text.count(space + b":") for space in _SPACES if space in text)
    return pairs if b"\\" not in text or b'\\\\":' in text else pairs - text.count(b'\\":')


def _refuse_repeated(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NameRepeated(f"names {name!r} twice")
            seen.add(name)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str, strict=False)
