"""Whether two globs can match one name: exact, for the globs of `fnmatch` (``*``, ``?``, ``[seq]``, ``[!seq]``).

Each glob is a sequence of tokens that take one character or any number of them. Both are walked through at once; a step needs
a character that both tokens take. Sets and ranges are finite unions of intervals, so it is enough to try their ends, the
characters beside them, and one that no glob names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

SEPARATOR = "/"
_USUAL = "ax1_-."
"""Tried first, so that the example reads like a file name."""


@dataclass(frozen=True, slots=True)
class Token:
    """One element of a glob: takes a character of ``ranges`` (or, ``negated``, any other), once or ``repeats``.

    ``slash``: it may take the separator of folders.
    """

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False
    repeats: bool = False
    slash: bool = True

    def takes(self, character: str, *, ignore_case: bool) -> bool:
        """Whether this element matches a character."""
        if character == SEPARATOR and not self.slash:
            return False
        forms = {character, character.lower(), character.upper()} if ignore_case else {character}
        return any(low <= form <= high for form in forms for low, high in self.ranges) != self.negated

    def ends(self) -> Iterator[str]:
        """The characters at which what it takes begins and ends."""
        for low, high in self.ranges:
            yield from (low, high)
            if ord(low) > 1:
                yield chr(ord(low) - 1)
            if ord(high) < 0x10FFFF:
                yield chr(ord(high) + 1)


ANYTHING = Token(ranges=(), negated=True, repeats=True)

Glob = tuple[Token, ...]


@lru_cache(maxsize=4096)
def parse(text: str) -> Glob:
    """The tokens of a glob, as `fnmatch` reads it; a bracket that is not closed is a character."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            tokens.append(ANYTHING)
        elif character == "?":
            tokens.append(Token(ranges=(), negated=True))
        elif character == "[" and (end := _closing(text, at)) is not None:
            tokens.append(_set(text[at:end]))
            at = end + 1
        else:
            tokens.append(Token(ranges=((character, character),)))
    return tuple(tokens)


def within_folder(glob: Glob) -> Glob:
    """The same, for names without folders: nothing takes the separator."""
    return tuple(replace(token, slash=False) for token in glob)


def below_any_folder(glob: Glob) -> Glob:
    """Paths of at least one folder that end in a name which ``glob`` matches."""
    return (ANYTHING, Token(ranges=((SEPARATOR, SEPARATOR),)), *within_folder(glob))


def after_prefix(glob: Glob, prefix: str, *, ignore_case: bool) -> list[Glob]:
    """What may follow ``prefix`` in texts that ``glob`` matches: the rests of the glob."""
    places = _closure(glob, {0})
    for character in prefix:
        taken = set()
        for place in places:
            if place < len(glob) and glob[place].takes(character, ignore_case=ignore_case):
                taken.add(place if glob[place].repeats else place + 1)
        places = _closure(glob, taken)
    return [glob[place:] for place in sorted(places)]


@lru_cache(maxsize=65_536)
def common(first: Glob, second: Glob, *, first_ignores: bool, second_ignores: bool, folders: bool) -> str | None:
    """A text that both globs match, as short as there is one; None if there is none.

    ``first_ignores``, ``second_ignores``: the glob ignores case. ``folders``: the text may hold separators.
    """
    characters = _characters(first, second, folders=folders)
    came: dict[tuple[int, int], tuple[tuple[int, int], str] | None] = {(0, 0): None}
    waiting = deque([(0, 0)])
    while waiting:
        place = left, right = waiting.popleft()
        if place == (len(first), len(second)):
            return _spelled(came, place)
        steps: list[tuple[tuple[int, int], str]] = []
        one = first[left] if left < len(first) else None
        other = second[right] if right < len(second) else None
        if one is not None and one.repeats:
            steps.append(((left + 1, right), ""))
        if other is not None and other.repeats:
            steps.append(((left, right + 1), ""))
        if one is not None and other is not None and not (one.repeats and other.repeats):
            step = (left if one.repeats else left + 1, right if other.repeats else right + 1)
            steps += [
                (step, character)
                for character in characters
                if one.takes(character, ignore_case=first_ignores)
                and other.takes(character, ignore_case=second_ignores)
            ][:1]
        for step, character in steps:
            if step not in came:
                came[step] = (place, character)
                (waiting.append if character else waiting.appendleft)(step)
    return None


def _closing(text: str, start: int) -> int | None:
    at = start + 1 if text[start : start + 1] == "!" else start
    at = at + 1 if text[at : at + 1] == "]" else at
    end = text.find("]", at)
    return None if end < 0 else end


def _set(text: str) -> Token:
    negated = text.startswith("!")
    text = text.removeprefix("!")
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            low, high = text[at], text[at + 2]
            ranges += [(low, high)] if low <= high else []
            at += 3
        else:
            ranges.append((text[at], text[at]))
            at += 1
    return Token(ranges=tuple(ranges), negated=negated)


def _closure(glob: Glob, places: set[int]) -> set[int]:
    found = set(places)
    for place in sorted(places):
        at = place
        while at < len(glob) and glob[at].repeats:
            at += 1
            found.add(at)
    return found


def _characters(first: Glob, second: Glob, *, folders: bool) -> list[str]:
    ends = [end for token in (*first, *second) for end in token.ends()]
    both = [form for end in ends for form in (end, end.lower(), end.upper()) if len(form) == 1]
    named = list(dict.fromkeys([*_USUAL, *both, SEPARATOR, "\ue000"]))
    return named if folders else [character for character in named if character != SEPARATOR]


def _spelled(came: dict[tuple[int, int], tuple[tuple[int, int], str] | None], place: tuple[int, int]) -> str:
    text = ""
    while (step := came[place]) is not None:
        place, character = step
        text = character + text
    return text
