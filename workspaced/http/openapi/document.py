"""Generate the OpenAPI 3.1 document from the table of operations and the resources' API sections.

This module performs no I/O.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ingestd.wire import names
from workspaced.core.json_schema import ref
from workspaced.http.openapi import shared
from workspaced.http.openapi.description import ApiSection, OperationDescription, Parameter, Success
from workspaced.http.openapi.events import webhooks
from workspaced.http.operations import Operation
from workspaced.settings.model import Limits

_ABOUT: Final = """\
Stores engineering data in workspaces: data sinks with their entries, blocks, files, and webhooks that send changes.

Send the API key in the header `x-api-key`. Every response has `X-Request-Id`; every error has a JSON body with `error`.
Unknown members of a request's body are ignored and named in `X-Ignored-Fields`; later versions may add members to responses.
HEAD works wherever GET does; the response to OPTIONS is 204 with `Allow`; any other method is 405 with `Allow`.
"""

_CLIENTS: Final = """
Any request can be refused with 408, 414, 431 or 503; then its connection is closed. Its head must arrive within
{head_seconds} seconds, in at most {head_bytes} bytes and {header_lines} header lines; path and query have at most
{target_bytes} bytes together. Bodies must be sent, and responses read, at {least_bytes_per_second} bytes per second or more.
A connection without a request is closed after {idle_seconds} seconds. One address may have {connections_per_address}
connections, and one key {streams_per_key} long lists under way.
"""

_PER_WORKSPACE: Final = "/v1/workspace/{workspace}/data-sink"
_NAME: Final = re.compile(r"\{(\w+)\}")


class MissingDescription(Exception):
    """The table and the descriptions do not have the same operations."""


def document(
    operations: Sequence[Operation], api_sections: Sequence[ApiSection], *, limits: Limits, version: str
) -> dict[str, Any]:
    """Return the whole document.

    Raises:
        MissingDescription: an operation has no description, or a description has no operation.
    """
    described = {one.name: (one, api_section) for api_section in api_sections for one in api_section.operations}
    table = {operation.name for operation in operations}
    if table != described.keys():
        missing, unused = sorted(table - described.keys()), sorted(described.keys() - table)
        raise MissingDescription(f"Without a description: {missing}. Described, but in no table: {unused}.")
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        one, api_section = described[operation.name]
        path, parameters = _shown_path(operation, api_section)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, one, api_section, parameters)
    schemas = {name: schema for api_section in api_sections for name, schema in api_section.schemas.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "workspaced",
            "version": version,
            "summary": "The engineering data workspace service.",
            "description": _ABOUT + _client_limits(limits),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service."}],
        "tags": [{"name": api_section.title, "description": api_section.description} for api_section in api_sections],
        "paths": paths,
        "webhooks": webhooks(),
        "components": {
            "schemas": {**schemas, **shared.refusal_schemas()},
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


def _shown_path(operation: Operation, api_section: ApiSection) -> tuple[str, list[Parameter]]:
    """Return the path with its public names, and its parameters in their order."""
    parameters = [
        api_section.path.get(f"{operation.name}:{name}") or api_section.path[name]
        for name in _NAME.findall(operation.path)
    ]
    texts = iter(parameters)
    return _NAME.sub(lambda _found: f"{{{next(texts).name}}}", operation.path), parameters


def _parameter(parameter: Parameter, location: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": location,
        "description": parameter.description,
        "required": parameter.required or location == "path",
        "schema": parameter.schema,
    }


def _operation(
    operation: Operation, one: OperationDescription, api_section: ApiSection, in_path: Sequence[Parameter]
) -> dict[str, Any]:
    parameters = [_parameter(parameter, "path") for parameter in in_path]
    parameters += [_parameter(parameter, "query") for parameter in one.query]
    parameters += [{"$ref": f"#/components/parameters/{name}"} for name in _request_headers(operation, one)]
    scopes = [operation.scope] if operation.scope else []
    result: dict[str, Any] = {
        "operationId": one.name,
        "tags": [api_section.title],
        "summary": one.summary,
        "description": f"{one.description}\n\nNeeds `{operation.scope}`." if operation.scope else one.description,
        "security": [{shared.API_KEY_SCHEME: scopes}] if scopes else [],
        "parameters": parameters,
        "responses": dict(_responses(operation, one)),
    }
    if scopes and (operation.anonymous or _public(operation)):
        result["security"].append({})
    if scopes and _public(operation):
        result["description"] += " Without a key, only if the workspace is public."
    if one.body:
        content = {"schema": one.body.schema, **({"example": one.body.example} if one.body.example is not None else {})}
        result["requestBody"] = {"required": one.body.required, "content": {one.body.media: content}}
    return result


def _public(operation: Operation) -> bool:
    """Whether it needs no key if the workspace is public (contract A6)."""
    return operation.method == "GET" and "{workspace}" in operation.path


def _posts(operation: Operation) -> bool:
    """Whether it takes an Idempotency-Key."""
    return operation.method == "POST" and operation.read is None


def _fences(operation: Operation) -> bool:
    """Whether it takes X-Writer (contract M11)."""
    return operation.prepare is not None and "{workspace}" in operation.path


def _request_headers(operation: Operation, one: OperationDescription) -> Iterator[str]:
    if operation.client_id:
        yield "ClientId"
    elif operation.read is None:
        yield "OptionalClientId"
    if _posts(operation):
        yield "IdempotencyKey"
    if _fences(operation):
        yield "Writer"
    if one.etag:
        yield "IfNoneMatch" if operation.read else "IfMatch"
    yield from one.headers
    yield "RequestId"


def _responses(operation: Operation, one: OperationDescription) -> Iterator[tuple[str, dict[str, Any]]]:
    always = _response_headers(operation)
    conditional = ("ETag",) if one.etag and operation.read else ()
    for success in filter(None, (one.success, one.partial)):
        yield str(success.status), _success(success, (*conditional, *always), body_read=bool(one.body))
    if conditional:
        unchanged = {"description": "The caller has this version.", "headers": shared.headers("ETag", *always)}
        yield "304", unchanged
    for status in sorted(_possible(operation, one)):
        yield str(status), _refused(status, operation, one)


def _response_headers(operation: Operation) -> tuple[str, ...]:
    """Return the headers of every response of the operation."""
    rate = ("RatePolicy", "Rate") if operation.scope else ()
    replayed = ("Replayed",) if _posts(operation) else ()
    has_bulk = operation.path == _PER_WORKSPACE or operation.path.startswith(f"{_PER_WORKSPACE}/")
    return ("RequestId", *rate, *replayed, *(("Bulk", "Fence") if has_bulk else ()))


def _success(success: Success, always: Iterable[str], *, body_read: bool) -> dict[str, Any]:
    ignored = ("Ignored",) if body_read else ()
    result: dict[str, Any] = {
        "description": success.description,
        "headers": shared.headers(*success.headers, *ignored, *always),
    }
    if success.schema is not None:
        forms = {success.media: success.schema, **success.also}
        result["content"] = {media: {"schema": schema} for media, schema in forms.items()}
    if success.links:
        result["links"] = {
            name: {"operationId": link.operation, "parameters": dict(link.parameters)}
            for name, link in success.links.items()
        }
    return result


def _client_limits(limits: Limits) -> str:
    """Return the limits of every request."""
    return _CLIENTS.format(**dataclasses.asdict(limits))


def _possible(operation: Operation, one: OperationDescription) -> set[int]:
    """Return the errors that can occur. 400 always can: a query or a path may hold a forbidden character."""
    possible = {400, 500, *one.refusals}
    if operation.scope:
        possible |= {401, 403, 429, 503}
    if "{workspace}" in operation.path:
        possible.add(404)
    if operation.body_bytes:
        possible |= {413, 415}
    if _posts(operation):
        possible |= {409, 422}
    if _fences(operation):
        possible.add(409)
    if one.etag and operation.read is None:
        possible.add(412)
    return possible


def _refused(status: int, operation: Operation, one: OperationDescription) -> dict[str, Any]:
    own = one.refusals.get(status, "")
    repeated = {
        409: "`request_in_progress`: an earlier request with this Idempotency-Key is still under way.",
        422: "`idempotency_key_reused`: the key was used with another content.",
    }
    fenced = {409: "`writer_fenced`: a newer request of this writer was accepted."}
    also = (repeated if _posts(operation) else {}, fenced if _fences(operation) else {})
    description = " ".join(text for text in (own, *(one.get(status, "") for one in also)) if text)
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
