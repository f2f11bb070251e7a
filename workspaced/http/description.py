"""The API description of an operation in the table of operations: types, headers, links, examples.

The prose is in the docstring of the operation's handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple

from workspaced.core.json_schema import Schema


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path or of the query, with its public name.

    ``absent``: the code and the cause of the 404 if the path names no resource.
    """

    name: str
    description: str
    schema: Schema
    required: bool = False
    absent: str = ""


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request body. ``content``: a class of bodies, or a schema. Any ``application/*+json`` is accepted as JSON."""

    content: Any
    example: object
    _: KW_ONLY
    required: bool = True
    media: str = "application/json"


class Link(NamedTuple):
    """An OpenAPI link: an operation that can follow a response, and its parameters as runtime expressions."""

    operation: str
    parameters: Mapping[str, str]


def links(parameters: Mapping[str, str], **operations: str) -> dict[str, Link]:
    """Return links to operations that take the same parameters, by the names of the links."""
    return {name: Link(operation, parameters) for name, operation in operations.items()}


@dataclass(frozen=True, slots=True)
class Success:
    """A successful response.

    ``content``: a class of records, a list of such a class (``list[BlockRecord]``), or a schema; None: zero bytes. ``also`` has
    other forms of the content, by media type. ``headers`` are named as in `workspaced.http.openapi.shared`; the ETag of a
    conditional read need not be named.
    """

    content: Any = None
    headers: tuple[str, ...] = ()
    _: KW_ONLY
    status: int = 200
    media: str = "application/json"
    also: Mapping[str, Schema] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)


DONE: Final = Success()
"""The successful response with status 200 and without a body."""


def listed(record: type, *headers: str, counted: bool = True) -> Success:
    """Return the response of a list of records; ``counted``: the total is always sent."""
    return Success(list[record], ("Count" if counted else "PartCount", "Links", *headers))  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSection:
    """The operations of a resource. ``path`` describes the parameters of paths, by their names.

    If a name has several meanings, ``operation:name`` has precedence over ``name``. ``schemas``: the schemas that types can't
    express.
    """

    title: str
    description: str
    path: Mapping[str, Parameter] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
