"""References to cells such as C7. Performs no I/O."""

from __future__ import annotations


def parse_reference(reference: str) -> tuple[int, int]:
    """Return row and column, both from 0, of a cell such as C7."""
    letters = reference.rstrip("0123456789")
    return int(reference[len(letters) :]) - 1, column_number(letters)


def column_number(letters: str) -> int:
    """Return the number, from 0, of a column that is named by letters."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def column_letters(number: int) -> str:
    """Return the letters of the column with this number, from 0."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
