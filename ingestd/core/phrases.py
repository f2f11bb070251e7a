"""Parts of sentences for people: shortened values, counts with nouns, lists of names, and the most similar name."""

from __future__ import annotations

from collections.abc import Iterable

_COMPARED_CHARACTERS = 300
_SHOWN_CHARACTERS = 60
_SENTENCE_CHARACTERS = 2000


def shortened(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return ``text`` as one printable line. After ``limit`` characters, an ellipsis replaces the rest."""
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return line if len(line) <= limit else f"{line[:limit]}…"


def clipped(sentence: str) -> str:
    """Return a sentence, which may quote external text, with at most 2,000 characters and an ellipsis.

    The cut is between two words, because redaction would not find the password in a part of a URL.
    """
    if len(sentence) <= _SENTENCE_CHARACTERS:
        return sentence
    start = sentence[: _SENTENCE_CHARACTERS + 1]
    return f"{start.rsplit(maxsplit=1)[0][:_SENTENCE_CHARACTERS]}…"


def counted(number: int, noun: str) -> str:
    """Return ``1 entry`` or ``3 entries``. ``noun``: the singular of a regular noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{number} {noun}s"


def first_names(names: Iterable[object], most: int = 12) -> str:
    """Return the first names and the number of further names: ``a, b and 3 more``."""
    listed = [str(name) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def as_sentence(text: str) -> str:
    """Return ``text`` with a full stop at its end, unless it ends as a sentence already."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def named(name: str, sentence: str) -> str:
    """Return ``name: sentence``. If the sentence begins with the name already, the name is not repeated."""
    return f"{name}: {sentence.removeprefix(f'{name}: ')}"


def nearest(word: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'path'?`` with a leading space, or an empty text if no name is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    near = get_close_matches(word[:_COMPARED_CHARACTERS], sorted(names), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
