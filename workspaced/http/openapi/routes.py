"""GET /openapi.json and GET /docs (contract G23): generated on the first request."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup, escape

from workspaced.core.json_body import encode
from workspaced.core.json_schema import OBJECT, STRING, Schema
from workspaced.http.description import Success
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Headers, Response, etag

_FRESH_SECONDS: Final = 300
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_CODE: Final = re.compile(r"`([^`]+)`")
_PARAGRAPH: Final = re.compile(r"\n\s*\n")
_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("workspaced.http.openapi", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def reference_page(document: Mapping[str, Any], style: str) -> str:
    """Return the reference page of a document as HTML."""
    operations = [
        (item[method]["tags"][0], _displayed(document, path, method, item[method]))
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    ]
    return _ENVIRONMENT.get_template("reference.html").render(
        info=document["info"],
        style=Markup(style),  # noqa: S704  from our own file
        api_sections=[
            (tag["name"], tag["description"], [one for name, one in operations if name == tag["name"]])
            for tag in document["tags"]
        ],
        events=[_displayed(document, name, "post", item["post"]) for name, item in document["webhooks"].items()],
        schemas=document["components"]["schemas"],
        prose=prose,
        brief=brief,
        schema=pretty,
    )


def _displayed(document: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation or an event as the page shows it; all references except those to schemas are resolved."""

    def resolved(value: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Any = value
        if "$ref" in value:
            found = document
            for part in value["$ref"].removeprefix("#/").split("/"):
                found = found[part]
        return dict(found)

    responses = [(status, resolved(response)) for status, response in operation["responses"].items()]
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "description": operation["description"],
        "needs": " ".join(
            scope for one in operation.get("security", ()) for scopes in one.values() for scope in scopes
        ),
        "parameters": [resolved(one) for one in operation.get("parameters", ())],
        "body": operation.get("requestBody"),
        "responses": [(status, {"headers": {}, **response}) for status, response in responses],
    }


def policy(style: str) -> str:
    """Return a Content-Security-Policy that allows this style sheet and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def prose(text: str) -> Markup:
    """Render paragraphs, with text between backticks as code."""
    return Markup().join(
        Markup("<p>{}</p>").format(_render_code(part)) for part in _PARAGRAPH.split(text.strip()) if part
    )


def _render_code(text: str) -> Markup:
    return Markup(_CODE.sub(lambda found: f"<code>{found[1]}</code>", str(escape(text))))  # noqa: S704  escaped first


def pretty(value: object) -> Markup:
    """Render JSON over several lines; references to schemas are links on the page."""
    text = str(escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
    return Markup(  # noqa: S704  escaped first
        re.sub(
            r"&#34;\$ref&#34;: &#34;#/components/schemas/(\w+)&#34;",
            r'&#34;$ref&#34;: <a href="#schema-\1">&#34;\1&#34;</a>',
            text,
        )
    )


def brief(schema: Mapping[str, Any]) -> Markup:
    """Render a schema in one line: ``string, 1 to 255``, or a link to a named schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(brief(one) for one in schema["anyOf"])
    if "enum" in schema:
        return Markup(", ").join(Markup("<code>{}</code>").format(value) for value in schema["enum"])
    if "const" in schema:
        return Markup("<code>{}</code>").format(msgspec.json.encode(schema["const"]).decode())
    kind = schema.get("type", "anything")
    if kind == "array":
        return Markup("list of {}").format(brief(schema.get("items", {})))
    about = [str(schema.get("format", kind))]
    lowest, highest = schema.get("minLength", schema.get("minimum")), schema.get("maxLength", schema.get("maximum"))
    if highest is not None:
        about.append(f"{lowest if lowest is not None else 0} to {highest:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"))
    elif lowest:
        about.append(f"from {lowest}")
    return Markup(", ").join(about)


class Publication:
    """The OpenAPI document and its reference page. ``build`` generates the document, and is called once."""

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return self._build()

    def schema_of(self, name: str) -> Schema:
        """Return a schema of the document's components."""
        schema: Schema = self.document["components"]["schemas"][name]
        return schema

    def operations(self, *, pages: bool) -> tuple[Operation, ...]:
        """Return the operations; ``pages``: including /docs."""
        document = Operation(
            name="openapi.document",
            method="GET",
            path="/openapi.json",
            scope=None,
            read=self._json,
            success=Success(OBJECT),
            etag=True,
        )
        reference = Operation(
            name="openapi.pages",
            method="GET",
            path="/docs",
            scope=None,
            read=self._page,
            success=Success(STRING, media="text/html"),
            etag=True,
        )
        return (document, reference) if pages else (document,)

    @cached_property
    def _encoded(self) -> bytes:
        return encode(self.document)

    @cached_property
    def _rendered(self) -> tuple[bytes, str]:
        style = files("workspaced.http.openapi").joinpath("templates/reference.css").read_text(encoding="utf-8")
        return reference_page(self.document, style).encode(), policy(style)

    async def _json(self, call: Call) -> Response:
        """Get this description.

        The OpenAPI 3.1 document, with the events that are sent to webhooks.
        200: The document.
        """
        return _cacheable(call, self._encoded, "application/json")

    async def _page(self, call: Call) -> Response:
        """Read this description.

        The description as an HTML page.
        200: The page.
        """
        page, security = self._rendered
        headers = (("Content-Security-Policy", security), ("Referrer-Policy", "no-referrer"))
        return _cacheable(call, page, "text/html; charset=utf-8", *headers)


def _cacheable(call: Call, body: bytes, media: str, *headers: tuple[str, str]) -> Response:
    digest = hashlib.sha256(body).hexdigest()[:32]
    kept: Headers = (etag(digest), ("Cache-Control", f"public, max-age={_FRESH_SECONDS}"))
    if call.has_seen(digest):
        return Response(status=304, headers=kept)
    typed: Headers = (("Content-Type", media), ("X-Content-Type-Options", "nosniff"))
    return Response(status=200, headers=(*typed, *kept, *headers), body=body)


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is committed to git: indented, with a final newline."""
    return msgspec.json.format(encode(document), indent=2).decode() + "\n"
