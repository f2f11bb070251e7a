"""Generate the OpenAPI 3.1 document from the table of operations, the docstrings of handlers and the sections.

This module performs no I/O.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin

from ingestd.wire import names
from workspaced.core.bodies import body_schema
from workspaced.core.json_schema import Schema, array, is_record, public_name, record_schemas, ref, string
from workspaced.events.catalogue import EVENT_TYPES, DomainEventType, schema_of
from workspaced.http.description import ApiSection, Parameter, Success
from workspaced.http.openapi import shared
from workspaced.http.operations import Operation
from workspaced.settings.model import Limits

_ABOUT: Final = """\
Stores engineering data in workspaces: data sinks with their entries, blocks, files, and webhooks that send changes.

Send the API key in the header `x-api-key`. A response has `X-Request-Id`, and an error a JSON body with `error`.
Unknown members of a request's body are ignored and named in `X-Ignored-Fields`; later versions may add members to responses.
HEAD works wherever GET does; the response to OPTIONS is 204 with `Allow`; any other method is 405 with `Allow`.
"""

_CLIENTS: Final = """
Any request can be refused with 408, 414, 431 or 503, as plain text; then its connection is closed. The head must arrive within
{head_seconds} seconds, in at most {head_bytes} bytes and {header_lines} header lines; path and query have at most
{target_bytes} bytes together. Bodies must be sent, and responses read, at {least_bytes_per_second} bytes per second or more.
A connection without a request is closed after {idle_seconds} seconds. One address may have {connections_per_address}
connections, and one key {streams_per_key} long lists under way.
"""

_PER_WORKSPACE: Final = "/v1/workspace/{workspace}/data-sink"
_NAME: Final = re.compile(r"\{(\w+)\}")


class MissingDescription(Exception):
    """The docstring of a handler lacks the description of its operation or of its successful response."""


@dataclass(frozen=True, slots=True)
class _Described:
    """An operation, the parameters of its path in their order, and its prose."""

    operation: Operation
    section: ApiSection
    in_path: Sequence[Parameter]
    prose: Prose


def document(
    operations: Sequence[Operation], sections: Mapping[str, ApiSection], *, limits: Limits, version: str
) -> dict[str, Any]:
    """Return the whole document. ``sections``: by the first part (before the dot) of the names of the section's operations.

    Raises:
        MissingDescription: an operation has no description.
    """
    described = [_describe(operation, sections[operation.name.partition(".")[0]], limits) for operation in operations]
    paths: dict[str, dict[str, Any]] = {}
    for one in described:
        texts = iter(one.in_path)
        path = _NAME.sub(lambda _found: f"{{{next(texts).name}}}", one.operation.path)  # noqa: B023  called at once
        paths.setdefault(path, {})[one.operation.method.lower()] = _operation(one)
    shown = {section.title: section for section in sections.values()}
    schemas = {name: schema for section in shown.values() for name, schema in section.schemas.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "workspaced",
            "version": version,
            "summary": "The engineering data workspace service.",
            "description": _ABOUT + _CLIENTS.format(**dataclasses.asdict(limits)),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [{"name": title, "description": section.description} for title, section in shown.items()],
        "paths": paths,
        "webhooks": webhooks(),
        "components": {
            "schemas": {**_types(operations, limits), **schemas, **shared.refusal_schemas()},
            "parameters": shared.request_headers(limits),
            "headers": shared.response_headers(),
            "responses": {shared.component(status): _refusal(status) for status in shared.REFUSALS},
            "securitySchemes": {
                shared.API_KEY_SCHEME: {
                    "type": "apiKey",
                    "in": "header",
                    "name": names.API_KEY,
                    "description": "A key made by `workspaced keys create` or by `POST /v1/api-keys`.",
                }
            },
        },
    }


def _describe(operation: Operation, section: ApiSection, limits: Limits) -> _Described:
    prose = read_prose(operation.handler, limits)
    if prose is None or not {success.status for success in _successes(operation)} <= prose.responses.keys():
        raise MissingDescription(f"The docstring of the handler of {operation.name} does not describe it.")
    names = _NAME.findall(operation.path)
    in_path = [section.path.get(f"{operation.name}:{name}") or section.path[name] for name in names]
    return _Described(operation, section, in_path, prose)


def _successes(operation: Operation) -> Iterator[Success]:
    return filter(None, (operation.success, operation.partial))


def _types(operations: Iterable[Operation], limits: Limits) -> dict[str, Schema]:
    """Return the schemas of the classes of bodies and records, by their names."""
    successes = [success.content for operation in operations for success in _successes(operation)]
    records = [kind for content in successes for kind in (*get_args(content), content) if is_record(kind)]
    bodies = [operation.body.content for operation in operations if operation.body]
    schemas = {body.__name__: body_schema(body, limits) for body in bodies if isinstance(body, type)}
    return {**record_schemas(*dict.fromkeys(records)), **schemas}


def _schema(content: Any) -> Schema:
    """Return the schema of a class, of a list of a class, or of alternatives (``A | B``); a schema is returned unchanged."""
    if isinstance(content, dict):
        return content
    if get_origin(content) is list:
        return array(_schema(*get_args(content)))
    return {"anyOf": list(map(_schema, get_args(content)))} if get_args(content) else ref(public_name(content))


def _parameter(parameter: Parameter, location: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": location,
        "description": parameter.description,
        "required": parameter.required or location == "path",
        "schema": parameter.schema,
    }


def _operation(one: _Described) -> dict[str, Any]:
    operation, prose = one.operation, one.prose
    parameters = [_parameter(parameter, "path") for parameter in one.in_path]
    parameters += [_parameter(parameter, "query") for parameter in operation.query]
    parameters += [{"$ref": f"#/components/parameters/{name}"} for name in _request_headers(operation)]
    scopes = [operation.scope] if operation.scope else []
    result: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [one.section.title],
        "summary": prose.summary,
        "description": f"{prose.description}\n\nNeeds `{operation.scope}`." if operation.scope else prose.description,
        "security": [{shared.API_KEY_SCHEME: scopes}] if scopes else [],
        "parameters": parameters,
        "responses": dict(_responses(one)),
    }
    if scopes and (operation.anonymous or _public(operation)):
        result["security"].append({})
    if scopes and _public(operation):
        result["description"] += " Without the permission, only if the workspace is public."
    if body := operation.body:
        example = {"example": body.example} if body.example is not None else {}
        content = {body.media: {"schema": _schema(body.content), **example}}
        result["requestBody"] = {"required": body.required, "content": content}
    return result


def _public(operation: Operation) -> bool:
    """Return whether the operation needs no key if the workspace is public (contract A6)."""
    return operation.method == "GET" and "{workspace}" in operation.path


def _posts(operation: Operation) -> bool:
    """Return whether the operation accepts an Idempotency-Key."""
    return operation.method == "POST" and operation.read is None


def _fences(operation: Operation) -> bool:
    """Return whether the operation accepts X-Writer (contract M11)."""
    return (operation.write or operation.prepare) is not None and "{workspace}" in operation.path


def _request_headers(operation: Operation) -> Iterator[str]:
    if operation.client_id:
        yield "ClientId"
    elif operation.read is None:
        yield "OptionalClientId"
    if _posts(operation):
        yield "IdempotencyKey"
    if _fences(operation):
        yield "Writer"
    if operation.etag:
        yield "IfNoneMatch" if operation.read else "IfMatch"
    yield from operation.headers
    yield "RequestId"


def _responses(one: _Described) -> Iterator[tuple[str, dict[str, Any]]]:
    operation = one.operation
    always = _response_headers(operation)
    conditional = ("ETag",) if operation.etag and operation.read else ()
    for success in _successes(operation):
        yield str(success.status), _success(success, one, (*conditional, *always))
    if conditional:
        unchanged = {"description": "The caller has this version.", "headers": shared.headers("ETag", *always)}
        yield "304", unchanged
    for status in sorted(_possible(one)):
        yield str(status), _refused(status, one)


def _response_headers(operation: Operation) -> tuple[str, ...]:
    """Return the headers of every response of the operation."""
    rate = ("RatePolicy", "Rate") if operation.scope else ()
    replayed = ("Replayed",) if _posts(operation) else ()
    has_bulk = operation.path == _PER_WORKSPACE or operation.path.startswith(f"{_PER_WORKSPACE}/")
    return ("RequestId", *rate, *replayed, *(("Bulk", "Fence", "Origins") if has_bulk else ()))


def _success(success: Success, one: _Described, always: Iterable[str]) -> dict[str, Any]:
    ignored = ("Ignored",) if one.operation.body else ()
    result: dict[str, Any] = {
        "description": one.prose.responses[success.status],
        "headers": shared.headers(*success.headers, *ignored, *always),
    }
    if success.content is not None:
        forms = {success.media: _schema(success.content), **success.also}
        result["content"] = {media: {"schema": schema} for media, schema in forms.items()}
    if success.links:
        result["links"] = {
            name: {"operationId": link.operation, "parameters": dict(link.parameters)}
            for name, link in success.links.items()
        }
    return result


def _possible(one: _Described) -> set[int]:
    """Return the statuses of possible errors. 400 is always possible: a query or a path may hold a forbidden character."""
    operation = one.operation
    possible = {400, 500, *(status for status in one.prose.responses if status >= 400)}
    if operation.scope:
        possible |= {401, 403, 429, 503}
    if "{workspace}" in operation.path or any(parameter.absent for parameter in one.in_path):
        possible.add(404)
    if operation.body_bytes:
        possible |= {413, 415}
    if _posts(operation):
        possible |= {409, 422}
    if _fences(operation):
        possible.add(409)
    if operation.etag and operation.read is None:
        possible.add(412)
    return possible


def _refused(status: int, one: _Described) -> dict[str, Any]:
    operation = one.operation
    absent = [parameter.absent for parameter in one.in_path] if status == 404 else []
    repeated = {
        409: "`request_in_progress`: an earlier request with this Idempotency-Key is still under way.",
        422: "`idempotency_key_reused`: the key was used with another content.",
    }
    fenced = {409: "`writer_fenced`: a newer request of this writer was accepted."}
    also = (repeated if _posts(operation) else {}, fenced if _fences(operation) else {})
    texts = (*absent, one.prose.responses.get(status, ""), *(more.get(status, "") for more in also))
    description = " ".join(filter(None, texts))
    document_form = operation.document_form and status == 400
    if not description and not document_form:
        return {"$ref": f"#/components/responses/{shared.component(status)}"}
    return _refusal(status, description=description, document_form=document_form)


def _refusal(status: int, *, description: str = "", document_form: bool = False) -> dict[str, Any]:
    content = {names.PROBLEM_JSON: {"schema": ref("Problem")}}
    if document_form:
        content = {names.JSON: {"schema": ref("InvalidRequest")}, **content}
        form = 'Exactly `{"error":"Invalid request"}`, unless `Accept` has application/problem+json.'
        description = f"{description} {form}".strip()
    special = {
        401: ("Authenticate",),
        405: ("Allow",),
        409: ("Newest",),
        416: ("ContentRange",),
        429: ("Retry",),
        503: ("Retry",),
    }.get(status, ())
    sent = ("ErrorCode", "RequestId", "RatePolicy", "Rate") if status != 500 else ("ErrorCode", "RequestId")
    return {
        "description": " ".join(text for text in (shared.REFUSALS[status], description) if text),
        "headers": shared.headers(*sent, *special),
        "content": content,
    }


_TAG: Final = "Events"
_SIGNED: Final = (
    "Signed by Standard Webhooks 1.0 (`webhook-id`, `webhook-timestamp`, `webhook-signature`) with the webhook's secrets. "
    "Sent at least once and in any order: `webhook-id` identifies repetitions, `sequence` the order."
)


def webhooks() -> dict[str, Any]:
    """Return one path item for each event type."""
    return {kind.name: {"post": _delivery(kind)} for kind in EVENT_TYPES.values()}


def _delivery(kind: DomainEventType) -> dict[str, Any]:
    schema = {name: value for name, value in schema_of(kind).items() if name != "$schema"}
    needed = f" Sent to webhooks of owners that have `{kind.scope}` on the workspace." if kind.scope else ""
    return {
        "operationId": f"event.{kind.name}",
        "tags": [_TAG],
        "summary": kind.description,
        "description": f"{_SIGNED}{needed}",
        "parameters": [
            _header(
                "webhook-id", "The id of the event, the same for every attempt.", string(pattern="^evt_[0-9a-f]{32}$")
            ),
            _header(
                "webhook-timestamp", "When this attempt was made, in seconds since 1970.", string(pattern="^[0-9]+$")
            ),
            _header(
                "webhook-signature",
                "`v1,` and base64 of HMAC-SHA256, one for each valid secret.",
                string(pattern="^v1,"),
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "2XX": {
                "description": "Accepted. After any other status, redirects included, the delivery is tried again later."
            },
            "410": {"description": "The webhook is disabled at once."},
        },
    }


def _header(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": True, "description": about, "schema": schema}


_CONTRACT = re.compile(r" \(contract [^)]*\)")
_RESPONSE = re.compile(r"^(?=\d{3}: )", re.MULTILINE)
_LIMIT = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """The texts of an operation. ``responses``: a text for each status; for an error, the codes and their causes."""

    summary: str
    description: str
    responses: Mapping[int, str]


def read_prose(handler: object, limits: Limits) -> Prose | None:
    """Return the prose of a handler; None if its docstring has no description.

    The first line is the summary, without its contract clause. Lines such as ``404: …`` describe responses, and
    continue until the next such line. Anything else is the description. ``$bulk_items`` is replaced by the value of the limit.
    """
    first, _, others = (inspect.getdoc(handler) or "").partition("\n\n")
    text, *responses = _RESPONSE.split(_LIMIT.sub(lambda found: str(getattr(limits, found[1])), others))
    if not text.strip():
        return None
    return Prose(
        summary=_CONTRACT.sub("", " ".join(first.split())).removesuffix("."),
        description=" ".join(text.split()),
        responses={int(one[:3]): " ".join(one[4:].split()) for one in responses},
    )
