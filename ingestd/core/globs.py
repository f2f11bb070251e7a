"""An exact test whether two globs can match the same name, for the globs of `fnmatch` (``*``, ``?``, ``[seq]``, ``[!seq]``).

Each glob is a sequence of tokens that match one character or any number of them. The search walks through both sequences at
the same time; a step needs a character that both tokens match. Sets and ranges are finite unions of intervals. So the search
needs only their ends, the characters next to these, and one character that no glob names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec.structs import replace

SEPARATOR = "/"
_USUAL = "ax1_-."
"""Characters that are tried first, so that the example looks like a file name."""


class Token(msgspec.Struct, frozen=True):
    """One element of a glob: matches a character of ``ranges`` (``negated``: any other), once or, with ``repeats``, any times.

    ``slash``: it may match the separator of folders.
    """

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False
    repeats: bool = False
    slash: bool = True

    def matches(self, character: str, *, ignore_case: bool) -> bool:
        """Return whether this element matches a character."""
        if character == SEPARATOR and not self.slash:
            return False
        forms = {character, character.lower(), character.upper()} if ignore_case else {character}
        return any(low <= form <= high for form in forms for low, high in self.ranges) != self.negated

    def ends(self) -> Iterator[str]:
        """Yield the characters at the ends of its ranges and next to them."""
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
    """Return the tokens of a glob, as `fnmatch` reads it; an unclosed bracket is a character."""
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
    """Return the glob for names without folders: no token matches the separator."""
    return tuple(replace(token, slash=False) for token in glob)


def below_any_folder(glob: Glob) -> Glob:
    """Return a glob of paths with at least one folder that end in a name which ``glob`` matches."""
    return (ANYTHING, Token(ranges=((SEPARATOR, SEPARATOR),)), *within_folder(glob))


def after_prefix(glob: Glob, prefix: str, *, ignore_case: bool) -> list[Glob]:
    """Return the parts of the glob that match what follows ``prefix`` in a text."""
    states = _closure(glob, {0})
    for character in prefix:
        reached = set()
        for state in states:
            if state < len(glob) and glob[state].matches(character, ignore_case=ignore_case):
                reached.add(state if glob[state].repeats else state + 1)
        states = _closure(glob, reached)
    return [glob[state:] for state in sorted(states)]


@lru_cache(maxsize=65_536)
def common(first: Glob, second: Glob, *, first_ignores: bool, second_ignores: bool, folders: bool) -> str | None:
    """Return a shortest text that both globs match; None: there is none.

    ``first_ignores``, ``second_ignores``: the glob ignores case. ``folders``: the text may contain separators.
    """
    characters = _characters(first, second, folders=folders)
    origins: dict[tuple[int, int], tuple[tuple[int, int], str] | None] = {(0, 0): None}
    queue = deque([(0, 0)])
    while queue:
        state = left, right = queue.popleft()
        if state == (len(first), len(second)):
            return _text_of(origins, state)
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
                if one.matches(character, ignore_case=first_ignores)
                and other.matches(character, ignore_case=second_ignores)
            ][:1]
        for step, character in steps:
            if step not in origins:
                origins[step] = (state, character)
                (queue.append if character else queue.appendleft)(step)
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


def _closure(glob: Glob, states: set[int]) -> set[int]:
    found = set(states)
    for state in sorted(states):
        at = state
        while at < len(glob) and glob[at].repeats:
            at += 1
            found.add(at)
    return found


def _characters(first: Glob, second: Glob, *, folders: bool) -> list[str]:
    ends = [end for token in (*first, *second) for end in token.ends()]
    both = [form for end in ends for form in (end, end.lower(), end.upper()) if len(form) == 1]
    named = list(dict.fromkeys([*_USUAL, *both, SEPARATOR, "\ue000"]))
    return named if folders else [character for character in named if character != SEPARATOR]


def _text_of(origins: dict[tuple[int, int], tuple[tuple[int, int], str] | None], state: tuple[int, int]) -> str:
    text = ""
    while (step := origins[state]) is not None:
        state, character = step
        text = character + text
    return text
