"""From a page's values to HTML. Everything is escaped unless a template says otherwise, and none does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from workspaced.ui.addresses import address, below
from workspaced.ui.assets import Assets

_NARROW_SPACE = "\u202f"
_SHOWN_CHARACTERS = 400
# The characters that change the direction of the text after them (Unicode, UAX #9).
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page to be shown: a template and its values. ``section`` is the part of the site that it belongs to."""

    template: str
    title: str
    section: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


class Renderer:
    """The templates of this package."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("workspaced.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            link=address, below=below, asset=assets.address, shown_characters=_SHOWN_CHARACTERS
        )
        self._environment.filters.update(instant=_instant, counted=_counted, plain_number=_plain_number, exact=_exact)

    def page(self, view: PageView, **common: object) -> bytes:
        """A whole page; ``common`` is what every page is given."""
        template = self._environment.get_template(view.template)
        return template.render(title=view.title, section=view.section, **common, **view.values).encode()

    def part(self, template: str, **values: object) -> str:
        """A part of a page."""
        return self._environment.get_template(template).render(**values)


def _instant(text: str) -> str:
    """``2026-11-21 22:32:49 UTC`` of the document's timestamp."""
    return f"{text[:10]} {text[11:19]} UTC"


def _counted(number: int) -> str:
    """``12 345``, with a space that does not break."""
    return f"{number:,}".replace(",", _NARROW_SPACE)


def _plain_number(number: int | Decimal) -> str:
    """A number with its digits as they are stored."""
    return str(number)


def _exact(text: str) -> Markup:
    """A text whose characters are all seen in their order: one that would turn the direction is isolated, with its number.

    It stays in the page, so that the text is copied as it is.
    """
    shown = Markup()
    end = 0
    for found in _DIRECTION.finditer(text):
        code = f"U+{ord(found[0]):04X}"
        shown += escape(text[end : found.start()])
        shown += Markup('<bdi class="direction" data-code="{}">{}</bdi>').format(code, found[0])
        end = found.end()
    return shown + escape(text[end:])
