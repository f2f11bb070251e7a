"""Declared methods: the signature of a function defines the request of an operation, for both clients.

- If the operation's path names a parameter, its value goes into the path.
- ``if_match``, ``if_none_match``, ``idempotency_key`` and ``client_id`` are headers.
- All other parameters go into the query of GET and DELETE, or into the JSON body of other methods, in camelCase.
- A member with the value ``UNSET`` is not sent. A header or query parameter with the value None is not sent either.
- The annotated result defines how the body of a success is read.

A method of a blocking client returns a value; a method of an asynchronous client returns a coroutine. The overloads give mypy
and editors the parameters and the result in both cases. `ingestd.client.operations` declares the methods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import cached_property, wraps
from string import Formatter
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar, get_type_hints, overload

import msgspec
from msgspec import UNSET

from ingestd.client.errors import value_of
from ingestd.client.exchange import AsyncExchange, BlockingExchange
from ingestd.client.readers import reader
from ingestd.client.request import NONE, ApiOperation, Read, Request
from ingestd.wire import names

P = ParamSpec("P")
T = TypeVar("T")

Arguments: TypeAlias = Mapping[str, Any]
"""The arguments of a call by name, with the defaults of the signature."""

_HEADERS = {
    "if_match": "If-Match",
    "if_none_match": "If-None-Match",
    "idempotency_key": names.IDEMPOTENCY_KEY,
    "client_id": names.CLIENT_ID,
}


class Declaration(ApiOperation, frozen=True, kw_only=True):
    """A decorator for functions without a body: an operation, and how it makes a request from the arguments of the function.

    ``read`` replaces the reader of the annotated result. ``check`` compares the response's value with the arguments. ``body``:
    the parameter that is the whole body. ``also_in_body``: parameters of the path that the body repeats. ``query``: a constant
    part of the query. ``prefer``: the header Prefer. ``optional_body``: a body without members is not sent.
    """

    read: Read[Any] | None = None
    check: Callable[[Any, Arguments], None] | None = None
    body: str = ""
    also_in_body: Collection[str] = ()
    query: Mapping[str, str] = NONE
    prefer: str = ""
    optional_body: bool = False

    def __call__(self, function: Callable[Concatenate[Any, P], T]) -> Method[P, T]:
        """Return the declared method."""
        return Method(function, self)


class Method(Generic[P, T]):
    """A method of both clients. `build` and `encoded` return a request for the method's operation."""

    def __init__(self, function: Callable[..., Any], operation: Declaration) -> None:
        self.operation = operation
        self.function, self.__doc__ = function, function.__doc__
        self._path = [field for _, field, _, _ in Formatter().parse(operation.path) if field]
        code = function.__code__
        self._positional = code.co_varnames[1 : code.co_argcount]
        self._named = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: BlockingExchange, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncExchange, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: BlockingExchange | AsyncExchange | None, owner: type) -> object:
        """Return the method, bound to a client."""
        if client is None:
            return self

        @wraps(self.function)
        def call(client: BlockingExchange, *args: P.args, **kwargs: P.kwargs) -> T:
            return value_of(client.send(self.build(*args, **kwargs)))

        @wraps(self.function)
        async def call_async(client: AsyncExchange, *args: P.args, **kwargs: P.kwargs) -> T:
            return value_of(await client.send(self.build(*args, **kwargs)))

        return MethodType(call if isinstance(client, BlockingExchange) else call_async, client)

    @cached_property
    def _read(self) -> Read[T]:
        return self.operation.read or reader(get_type_hints(self.function)["return"])

    @cached_property
    def _places(self) -> dict[str, tuple[str, str]]:
        """The part of the request in which each parameter is sent (path, query, header or body), and the name that is sent."""
        hints, path = get_type_hints(self.function), dict.fromkeys(self._path, "path")
        options = hints["options"].__args__[0].__annotations__ if "options" in hints else ()  # Unpack[…] of a TypedDict
        others = "query" if self.operation.method in {"GET", "DELETE"} else "body"
        return {
            name: ("header", _HEADERS[name]) if name in _HEADERS else (path.get(name, others), _camel_case(name))
            for name in (*self._named, *options)
        }

    def build(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """Return the request of a call.

        Raises:
            TypeError: an argument is missing or unknown.
        """
        # This call raises TypeError for wrong arguments; `Signature.bind` would take ten times as long.
        self.function(None, *args, **kwargs)
        given = {**(self.function.__kwdefaults__ or {}), **dict(zip(self._positional, args, strict=False)), **kwargs}
        operation, places, check = self.operation, self._places, self.operation.check
        parts: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "body": {}}
        for name, value in given.items():
            if name not in places:
                raise TypeError(f"{self.function.__name__}() got an unexpected keyword argument {name!r}")
            place, sent = places[name]
            if value is not UNSET and (value is not None or place == "body"):
                parts[place][sent] = _text(value) if place == "query" else value
        for name in operation.also_in_body:
            parts["body"][name] = given[name]
        body = given[operation.body] if operation.body else parts["body"]
        has_body = body or (operation.method in {"POST", "PUT", "PATCH"} and not operation.optional_body)
        return Request(
            operation=operation,
            read=self._read,
            names=parts["path"],
            query={**parts["query"], **operation.query} or None,
            body=msgspec.json.encode(body) if has_body else None,
            headers=self._preferring(parts["header"]),
            check=None if check is None else lambda value: check(value, given),
        )

    def encoded(self, body: bytes, *path: str, **headers: str) -> Request[T]:
        """Return a request without a check and with an encoded body. ``path``: the values of the names in the path."""
        return Request(
            operation=self.operation,
            read=self._read,
            names=dict(zip(self._path, path, strict=True)),
            query=self.operation.query or None,
            body=body,
            headers=self._preferring({_HEADERS[name]: value for name, value in headers.items()}),
        )

    def _preferring(self, headers: dict[str, str]) -> dict[str, str]:
        return {**headers, names.PREFER: self.operation.prefer} if self.operation.prefer else headers


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return msgspec.json.encode(value).decode() if isinstance(value, Mapping) else str(value)
