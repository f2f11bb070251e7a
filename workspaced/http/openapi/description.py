"""Descriptions of a resource's operations; everything else follows from the table of operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, NamedTuple

from workspaced.core.json_schema import Schema, array, ref


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path or of the query, by its public name."""

    name: str
    description: str
    schema: Schema
    required: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A request body. ``media`` is its type; JSON of any ``application/*+json`` is accepted as JSON."""

    schema: Schema
    example: object
    _: KW_ONLY
    required: bool = True
    media: str = "application/json"


class Link(NamedTuple):
    """An operation that a response leads to, and its parameters as runtime expressions of OpenAPI."""

    operation: str
    parameters: Mapping[str, str]


def links(parameters: Mapping[str, str], **operations: str) -> dict[str, Link]:
    """Return links to operations that take the same parameters, by the names of the links."""
    return {name: Link(operation, parameters) for name, operation in operations.items()}


@dataclass(frozen=True, slots=True)
class Success:
    """A successful response.

    ``schema`` None: zero bytes. ``also`` has other forms of it, by media type. ``headers`` are named as in
    `workspaced.http.openapi.shared`; the ETag of a conditional read need not be named.
    """

    description: str
    schema: Schema | None = None
    _: KW_ONLY
    status: int = 200
    media: str = "application/json"
    also: Mapping[str, Schema] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    links: Mapping[str, Link] = field(default_factory=dict)


LISTED: Final = ("Count", "Links")
"""The headers of a list."""
WALKED_LIST: Final = ("PartCount", "Links")
"""The headers of a list that may be too long to be counted."""


def listed(description: str, name: str, *headers: str, counted: bool = True) -> Success:
    """Return the response of a list of the component ``name``; ``counted``: the total is always sent."""
    return Success(description, array(ref(name)), headers=(*(LISTED if counted else WALKED_LIST), *headers))


@dataclass(frozen=True, slots=True)
class OperationDescription:
    """The description of an operation, which has the same name in the table.

    ``refusals`` has the errors that only this operation can have: for a status, the codes in the body and their causes.
    ``etag``: If-None-Match on a read, If-Match on a write. ``headers`` are further optional request headers, by their
    names in `workspaced.http.openapi.shared`. ``partial`` is the response with status 206.
    """

    name: str
    summary: str
    description: str
    success: Success
    _: KW_ONLY
    partial: Success | None = None
    body: Body | None = None
    query: tuple[Parameter, ...] = ()
    refusals: Mapping[int, str] = field(default_factory=dict)
    etag: bool = False
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSection:
    """The operations of a resource. ``path`` describes the parameters by their names in the table's paths.

    A name may have several meanings: ``operation:name`` has precedence over ``name``.
    """

    title: str
    description: str
    operations: tuple[OperationDescription, ...]
    path: Mapping[str, Parameter] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
