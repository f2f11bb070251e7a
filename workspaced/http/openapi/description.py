"""What a slice says about its operations; everything else follows from the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workspaced.http.openapi.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the path or of the query, as callers know it."""

    name: str
    description: str
    schema: Schema
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A request body. ``media`` names its type; JSON of any ``application/*+json`` is taken where JSON is."""

    schema: Schema
    example: object
    required: bool = True
    media: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where an answer leads: an operation, and its parameters as runtime expressions of OpenAPI."""

    operation: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """An answer that is no refusal.

    ``schema`` None: zero bytes. ``also`` has other forms of it, by media type. ``headers`` are named as in
    `workspaced.http.openapi.shared`.
    """

    description: str
    schema: Schema | None = None
    status: int = 200
    media: str = "application/json"
    also: Mapping[str, Schema] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    links: Mapping[str, Link] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDescription:
    """An operation of the table, by its name there.

    ``refusals`` has what only this operation can meet: for a status, the codes in the body and when they come.
    ``etag``: If-None-Match on a read, If-Match on a write. ``headers`` are further optional request headers, by their
    names in `workspaced.http.openapi.shared`.
    """

    name: str
    summary: str
    description: str
    success: tuple[Success, ...]
    body: Body | None = None
    query: tuple[Parameter, ...] = ()
    refusals: Mapping[int, str] = field(default_factory=dict)
    etag: bool = False
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSection:
    """The operations of a slice. ``path`` has the parameters for the names in the table's paths.

    A name of the table may mean different things to callers in different operations: ``operation:name`` goes before ``name``.
    """

    title: str
    description: str
    operations: tuple[OperationDescription, ...]
    path: Mapping[str, Parameter] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
