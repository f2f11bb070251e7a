"""Renders the pages as HTML. All values are escaped."""

from __future__ import annotations

import time

from jinja2 import Environment, PackageLoader, StrictUndefined

from ingestd.core.clock import moment
from ingestd.daemon.location import format_location
from ingestd.process.pages.assets import PageAssets
from ingestd.process.pages.text import counted, exact


class PageRenderer:
    """The templates of this package."""

    def __init__(self, assets: PageAssets) -> None:
        self._environment = Environment(
            loader=PackageLoader("ingestd.daemon.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(asset=assets.address, location=format_location)
        self._environment.filters.update(moment=moment, counted=counted, exact=exact, duration=duration, age=_age)

    def render(self, template: str, **values: object) -> str:
        """Render a template with its values."""
        return self._environment.get_template(template).render(**values)


def duration(seconds: float) -> str:
    """Return ``850 ms``, ``12 s``, ``3 min``, ``5 h`` or ``2 d``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit, next_size in ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800)):
        if seconds < next_size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def _age(at: float) -> str:
    return duration(max(0.0, time.time() - at))
