"""Declarations: the signature of a method defines the request that it sends.

A method of a client is declared as a function without a body. Its parameters, its result and the operation's row define
the request:

- A parameter with a name of the operation's path goes into the path.
- ``if_match``, ``if_none_match``, ``idempotency_key``, ``client_id`` and ``writer`` are headers.
- All others are the query of GET and DELETE, and the members of the JSON body of the other methods, in camelCase.
- A member with the value ``UNSET`` is not sent. A header or query parameter with the value None is not sent either.
- The annotated result says how the body of a success is read.

`declare`, `paged`, `custom` and `streamed` make the methods; `ingestd.client.requests` declares them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from string import Formatter
from types import MappingProxyType
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec import UNSET

from ingestd.client.methods import Declaration, Method, iterate, iterate_async, send, send_async
from ingestd.client.operations import ApiOperation
from ingestd.client.pages import PagedList
from ingestd.client.readers import reader
from ingestd.client.request import Read, RecordStream, Request
from ingestd.wire import names
from ingestd.wire.writer import HEADER as WRITER

P = ParamSpec("P")
T = TypeVar("T")

SendMethod: TypeAlias = Method[P, T, Coroutine[Any, Any, T]]
IterationMethod: TypeAlias = Method[P, Generator[T], AsyncGenerator[T]]
SortOrder: TypeAlias = Literal["ASC", "DESC"]
Arguments: TypeAlias = Mapping[str, Any]
"""The arguments of a call by name, with defaults."""

_HEADERS = {
    "if_match": "If-Match",
    "if_none_match": "If-None-Match",
    "idempotency_key": names.IDEMPOTENCY_KEY,
    "client_id": names.CLIENT_ID,
    "writer": WRITER,
}
_NONE: Mapping[str, str] = MappingProxyType({})


class SortOptions(TypedDict, total=False):
    """Parameters of sorted lists."""

    sort_order: SortOrder | None
    sorted_by: str | None


class ListOptions(SortOptions, total=False):
    """Parameters of a method that returns a list, or a part of it."""

    take: int | None
    skip: int | None


class PageOptions(TypedDict, total=False):
    """Parameters of a method that reads a list page by page."""

    page_length: int


class IterOptions(SortOptions, PageOptions, total=False):
    """Parameters of a method that reads a sorted list page by page."""


class WriteOptions(TypedDict, total=False):
    """Headers of every write.

    ``writer``: a name, an epoch and an attempt (``daemon-7;1;42``). In a workspace, the service refuses it with ``Conflict``
    after a request of the same name with a newer epoch or attempt.
    """

    client_id: str | None
    writer: str | None


class CreateOptions(WriteOptions, total=False):
    """Headers of a request that may be repeated with the same ``idempotency_key``."""

    idempotency_key: str | None


class ChangeOptions(WriteOptions, total=False):
    """Headers of a request that changes one version of a record."""

    if_match: str | None


def declare(
    operation: ApiOperation,
    *,
    read: Read[Any] | None = None,
    check: Callable[[Any, Arguments], None] | None = None,
    body: str = "",
    also_in_body: Collection[str] = (),
    in_query: Collection[str] = (),
    fixed_query: Mapping[str, str] = _NONE,
    rename: Mapping[str, str] = _NONE,
    prefer: str = "",
    optional_body: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], T]], SendMethod[P, T]]:
    """Declare a method that sends one request of an operation.

    ``read`` replaces the reader of the annotated result. ``check`` compares the value with the arguments. ``body``: the
    parameter that is the whole body. ``also_in_body``: parameters of the path that the body repeats. ``in_query``:
    parameters of the query though the operation has a body. ``fixed_query``: parameters with one value. ``rename``: names
    that are not the parameter's in camelCase. ``prefer``: the header Prefer. ``optional_body``: a member with the value
    None is not sent, and neither is a body without members.
    """

    def decorate(function: Callable[Concatenate[Any, P], T]) -> SendMethod[P, T]:
        declaration = Declaration(function)
        path = {field for _, field, _, _ in Formatter().parse(operation.path) if field}
        members = {name: rename.get(name) or _camel_case(name) for name in declaration.signature.parameters}
        others = members.keys() - path - _HEADERS.keys()
        queried = others if operation.method in {"GET", "DELETE"} else others & set(in_query)
        in_body = {name: members[name] for name in members if name in (others - queried) | set(also_in_body)}
        omitted = (None, UNSET) if optional_body else (UNSET,)
        read_value = read or reader(declaration.result)

        def encode(given: Arguments) -> bytes | None:
            if body:
                return msgspec.json.encode(given[body])
            values = {member: given[name] for name, member in in_body.items() if given[name] not in omitted}
            return msgspec.json.encode(values) if values or (in_body and not optional_body) else None

        def build(*args: P.args, **kwargs: P.kwargs) -> Request[T]:
            given = declaration.arguments(*args, **kwargs)
            return Request(
                operation=operation,
                read=read_value,
                path={name: given[name] for name in path},
                query=query_of({members[name]: given[name] for name in members if name in queried} | {**fixed_query}),
                body=encode(given),
                headers=headers_of(given, prefer=prefer),
                check=None if check is None else lambda value: check(value, given),
            )

        return Method(declaration, build, send, send_async)

    return decorate


def paged(
    whole: SendMethod[..., tuple[T, ...]],
    *,
    page_length: int,
    identity: Callable[[T], str] = attrgetter("id"),
    documented: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], Iterator[T]]], IterationMethod[P, T]]:
    """Declare a method that reads the list of ``whole`` page by page.

    Its parameters are those of ``whole`` without ``take`` and ``skip``, and ``page_length``; its default is given here.
    ``identity`` returns the id of a record. ``documented``: the interface document itself has pages for this list.
    """

    def decorate(function: Callable[Concatenate[Any, P], Iterator[T]]) -> IterationMethod[P, T]:
        declaration = Declaration(function)

        def build(*args: P.args, **kwargs: P.kwargs) -> PagedList[T]:
            given = declaration.arguments(*args, **kwargs)
            length = given.pop("page_length")
            return PagedList(
                whole=whole.build(**given),
                page_length=page_length if length is UNSET else length,
                identity=identity,
                documented=documented,
            )

        return Method(declaration, build, iterate, iterate_async)

    return decorate


def custom(function: Callable[Concatenate[Any, P], Request[T]]) -> SendMethod[P, T]:
    """Make a method of a function that returns the request itself."""
    return Method(Declaration(function), lambda *args, **kwargs: function(None, *args, **kwargs), send, send_async)


def streamed(function: Callable[Concatenate[Any, P], RecordStream[T]]) -> IterationMethod[P, T]:
    """Make a method that reads one response in chunks of a function that returns the stream."""
    return Method(
        Declaration(function), lambda *args, **kwargs: function(None, *args, **kwargs), iterate, iterate_async
    )


def query_of(given: Arguments) -> Mapping[str, str] | None:
    """Return the parameters of a query, or None if no value is given."""
    return {name: _text(value) for name, value in given.items() if value not in (None, UNSET)} or None


def headers_of(given: Arguments, *, prefer: str = "") -> Mapping[str, str]:
    """Return the headers that are among the arguments of a call."""
    headers = {header: given[name] for name, header in _HEADERS.items() if given.get(name) not in (None, UNSET)}
    return {**headers, names.PREFER: prefer} if prefer else headers


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return msgspec.json.encode(value).decode() if isinstance(value, Mapping) else str(value)
