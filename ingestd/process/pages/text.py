"""Texts and numbers as pages show them."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_NARROW_SPACE = "\u202f"
# The characters that change the direction of the following text (Unicode, UAX #9).
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def counted(number: int) -> str:
    """Return a number with narrow no-break spaces between thousands: ``12 345``."""
    return f"{number:,}".replace(",", _NARROW_SPACE)


def exact(text: str) -> Markup:
    """Render a text with all characters visible in order: each direction character is isolated and shown with its code.

    The character stays in the page, so that copying gives the exact text.
    """
    shown = Markup()
    end = 0
    for found in _DIRECTION.finditer(text):
        code = f"U+{ord(found[0]):04X}"
        shown += escape(text[end : found.start()])
        shown += Markup('<bdi class="direction" data-code="{}">{}</bdi>').format(code, found[0])
        end = found.end()
    return shown + escape(text[end:])
