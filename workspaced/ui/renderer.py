"""The renderer of pages as HTML. All values are escaped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ingestd.process.pages.assets import CACHED, PageAssets
from ingestd.process.pages.text import counted, exact
from workspaced.core.json_body import encode
from workspaced.core.origin_phrase import origin_phrase
from workspaced.core.problems import NotFoundProblem
from workspaced.core.sort_keys import number_of
from workspaced.http.headers import RequestHeaders
from workspaced.http.responses import Response
from workspaced.ui.addresses import address, below
from workspaced.ui.fed_entries import feeder
from workspaced.ui.value_chart import BOX


class Assets(PageAssets):
    """The asset files of this package, and the files that all pages of the project share."""

    def __init__(self) -> None:
        super().__init__("workspaced.ui", prefix="/ui/assets")

    def response(self, name: str, headers: RequestHeaders) -> Response:
        """Return the response with the file of this name.

        Raises:
            NotFoundProblem: there is no such file, for example because a page of an older version requests it.
        """
        asset = self.find(name)
        if asset is None:
            raise NotFoundProblem("no_such_asset", "There is no such file. Reload the page.")
        kept = (("ETag", asset.tag), CACHED)
        if asset.tag in headers.get("If-None-Match", ""):
            return Response(status=304, headers=kept)
        return Response(status=200, headers=(("Content-Type", asset.media_type), *kept), body=asset.body)


_SHOWN_CHARACTERS = 400
_SHOWN_ITEMS = 100
_SHORT_WORD = 12
_LINE_CHARACTERS = 56
_WORD_CHARACTERS = 36
_WORD = re.compile(r"[^./]*[./]|[^./]+")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page to render: a template and its values. ``section`` is the item that the navigation marks as current."""

    template: str
    title: str
    section: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def title_of(*parts: str) -> str:
    """Return the title of a browser tab. The first part is the shown object: a narrow tab shows only the beginning."""
    return " · ".join(parts)


def page_view(template: str, title: str, section: str, **values: object) -> PageView:
    """Return a page with status 200."""
    return PageView(template=template, title=title, section=section, values=values)


class Renderer:
    """Renders the templates of this package."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("workspaced.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            link=address,
            below=below,
            asset=assets.address,
            box=BOX,
            shown_characters=_SHOWN_CHARACTERS,
            shown_items=_SHOWN_ITEMS,
        )
        self._environment.filters.update(
            instant=_instant,
            counted=counted,
            plain_number=str,
            exact=exact,
            exact_attribute=_exact_attribute,
            shown=entry_digest,
            origin_phrase=shown_origin,
            feeder=feeder,
            width=_width,
            words=_words,
        )
        self._environment.tests.update(timestamp=_is_timestamp, of_short_words=_is_of_short_words)

    def page(self, view: PageView, **common: object) -> bytes:
        """Render a whole page. ``common`` has the values that every page needs."""
        template = self._environment.get_template(view.template)
        return template.render(title=view.title, section=view.section, **common, **view.values).encode()

    def part(self, template: str, **values: object) -> str:
        """Render a template of a part of a page."""
        return self._environment.get_template(template).render(**values)


def shown_origin(origin: Mapping[str, Any]) -> str:
    """Return the phrase for an origin record of the API; see `origin_phrase`."""
    return origin_phrase(**{name: origin[name] for name in ("source", "file", "row", "pipeline")})


def _instant(text: str) -> str:
    """Return ``2026-11-21 22:32:49 UTC`` for the API's timestamp."""
    return f"{text[:10]} {text[11:19]} UTC"


def _exact_attribute(text: str) -> Markup:
    """Return a text as the value of an attribute. CR is written as a reference, because HTML would read CR or CR LF as LF."""
    return Markup(str(escape(text)).replace("\r", "&#13;"))  # noqa: S704 - escaped


def _width(text: str | None) -> str:
    """Return the CSS classes of a cell: ``short number`` for a number, ``short`` for one short line, or ``long``."""
    if text is None:
        return "short"
    if number_of(text) is not None:
        return "short number"
    return "short" if len(text) <= _LINE_CHARACTERS and "\n" not in text else "long"


def _words(key: str) -> Markup:
    """Render a key. Lines break only after a dot or a slash, or within a word that is longer than a narrow line."""
    shown = Markup()
    for word in _WORD.findall(key):
        text = exact(word)
        shown += text if len(word) > _WORD_CHARACTERS else Markup('<span class="line">{}</span><wbr>').format(text)
    return shown


def _is_timestamp(value: object) -> bool:
    return isinstance(value, str) and _TIMESTAMP.fullmatch(value) is not None


def _is_of_short_words(text: str) -> bool:
    """Return whether each word of a text fits into a column of a table, so that no word must be broken."""
    return all(len(word) <= _SHORT_WORD for word in text.split())


def shown_digest(values: Mapping[str, Any]) -> str:
    """Return a digest of the values. It depends only on the values, so a change that was undone is no conflict."""
    return hashlib.sha256(encode(sorted(values.items()))).hexdigest()[:32]


def entry_values(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of an entry that users can change."""
    return {"value": entry["value"], "dataType": entry["dataType"]}


def entry_digest(entry: Mapping[str, Any]) -> str:
    """Return the digest of the members of an entry that users can change."""
    return shown_digest(entry_values(entry))
