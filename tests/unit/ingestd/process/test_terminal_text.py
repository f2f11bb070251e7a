"""Lines for a terminal."""

from __future__ import annotations

from ingestd.process.redaction import mask_secrets
from ingestd.process.terminal_text import safe_line, terminal_line


def test_control_characters_are_escapes_and_letters_are_unchanged() -> None:
    assert terminal_line("a\x1b[2Jb\nc\u202e \N{GREEK SMALL LETTER MU}g") == r"a\x1b[2Jb\nc\u202e μg"


def test_a_secret_with_a_control_character_is_masked_before_that_becomes_an_escape() -> None:
    mask_secrets(["plan\tted-7351"])
    assert safe_line("refused: plan\tted-7351\x07") == r"refused: ***\x07"
