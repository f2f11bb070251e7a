"""Renders the pages as HTML. All values are escaped, and secrets in the values are masked."""

from __future__ import annotations

import time
from datetime import UTC
from functools import cached_property

import jinja2
from markupsafe import Markup

from ingestd.core.clock import moment
from ingestd.daemon.reporting import format_location
from ingestd.process.pages.assets import PageAssets
from ingestd.process.pages.text import counted, exact
from ingestd.process.redaction import redact_text
from ingestd.web.numeric_change import numeric_change

_NEAR_DAYS = {-1: "yesterday", 1: "tomorrow"}


class PageRenderer:
    """Renders the templates of this package."""

    def __init__(self, assets: PageAssets) -> None:
        self._assets = assets

    @cached_property
    def _environment(self) -> jinja2.Environment:
        """The templates. They are created for the first page, so that the daemon's start needs no import of jinja2."""
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("ingestd.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_without_secrets,
        )
        environment.globals.update(asset=self._assets.address, location=format_location, change=numeric_change)
        environment.filters.update(
            moment=moment, counted=counted, exact=_exact, duration=duration, age=_age, clock=clock, rate=rate
        )
        # A secret is masked before it is percent-encoded, because an encoded secret is not recognised later.
        encode = environment.filters["urlencode"]
        environment.filters["urlencode"] = lambda text: encode(redact_text(text))
        return environment

    def render(self, template: str, **values: object) -> str:
        """Render a template with its values."""
        return self._environment.get_template(template).render(**values)


def _without_secrets(value: object) -> object:
    """Return the value of an expression without secrets. The result of a macro is already masked."""
    return redact_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _exact(text: str) -> Markup:
    return exact(redact_text(text))


def duration(seconds: float) -> str:
    """Return a duration as text, such as ``850 ms``, ``12 s``, ``3 min``, ``5 h`` or ``2 d``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit, next_size in ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800)):
        if seconds < next_size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def rate(count: float) -> str:
    """Return a number per hour as text: ``12 500``, ``12``, ``0.4``, ``less than 0.1``."""
    if 0 < count < 0.05:
        return "less than 0.1"
    return counted(round(count)) if count >= 10 or count == round(count) else f"{count:.1f}"


def clock(seconds: float, now: float | None = None) -> str:
    """Return a short time in UTC: ``05:10:34`` of today, ``yesterday 05:10``, ``tomorrow 05:10``, ``2026-11-20 05:10``."""
    day = 86_400
    days = seconds // day - (time.time() if now is None else now) // day
    at = moment(seconds, UTC)
    if days == 0:
        return at[11:19]
    return f"{_NEAR_DAYS.get(int(days), at[:10])} {at[11:16]}"


def _age(at: float) -> str:
    return duration(max(0.0, time.time() - at))
