"""Descriptors that make one declaration a method of both clients.

Read from a blocking client, a `Method` returns a value, or a generator of records. Read from an asynchronous client, it
returns a coroutine, or an asynchronous generator. The overloads give mypy and editors the parameters and the result of
``client.get_sink`` in both. A blocking twin of each method would be more code, and another source to keep equal.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Generic, ParamSpec, Self, TypeVar, get_args, get_origin, get_type_hints, overload

import httpx
from msgspec import UNSET

from ingestd.client.pages import PagedList, PageReader
from ingestd.client.request import RecordStream, Request

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
A = TypeVar("A")


class BlockingSender(ABC):
    """A client with methods that return when the response has arrived."""

    @abstractmethod
    def send(self, request: Request[T]) -> T:
        """Send a request and return its value.

        Raises:
            ServiceError: the request did not succeed.
            Unaddressable: a name can't be a segment of a path. Nothing was sent.
        """

    @abstractmethod
    def open(self, request: Request[Any]) -> AbstractContextManager[httpx.Response]:
        """Send a request and yield a success before its body is read. Raises as `send`, also within the block."""


class AsyncSender(ABC):
    """A client with methods that are coroutines."""

    @abstractmethod
    async def send(self, request: Request[T]) -> T:
        """See `BlockingSender.send`."""

    @abstractmethod
    def open(self, request: Request[Any]) -> AbstractAsyncContextManager[httpx.Response]:
        """See `BlockingSender.open`."""


class Declaration:
    """The signature of a declared function. ``result``: the annotated type that it returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        hints = get_type_hints(function)
        self.result = hints["return"]
        parameters: list[inspect.Parameter] = []
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                parameters.append(parameter)
                continue
            (options,) = hints[parameter.name].__args__  # Unpack[…] of a TypedDict
            parameters += [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=UNSET, annotation=annotation.__forward_arg__
                )
                for name, annotation in options.__annotations__.items()
            ]
        result = self.result
        if get_origin(result) in {Request, RecordStream}:
            (result,) = get_args(result)
        self.signature = inspect.Signature(parameters, return_annotation=result)

    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments of a call by name; those that are not given have their defaults.

        Raises:
            TypeError: an argument is missing or unknown.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments


class Method(Generic[P, S, A]):
    """A method of both clients: ``build`` makes its request, ``blocking`` and ``asynchronous`` send it."""

    def __init__(
        self,
        declaration: Declaration,
        build: Callable[P, Any],
        blocking: Callable[[BlockingSender, Any], S],
        asynchronous: Callable[[AsyncSender, Any], A],
    ) -> None:
        self.declaration = declaration
        self.build = build
        self._blocking = blocking
        self._asynchronous = asynchronous
        self.__doc__ = declaration.function.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: BlockingSender, owner: type) -> Callable[P, S]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, A]: ...

    def __get__(self, client: BlockingSender | AsyncSender | None, owner: type) -> object:
        """Return the method of one client."""
        if client is None:
            return self
        build = self.build
        if isinstance(client, BlockingSender):
            blocking, run = client, self._blocking

            def call(*args: P.args, **kwargs: P.kwargs) -> S:
                return run(blocking, build(*args, **kwargs))

            return _with_signature(call, self.declaration)
        asynchronous, start = client, self._asynchronous
        if not inspect.iscoroutinefunction(start):
            return _with_signature(
                lambda *args, **kwargs: start(asynchronous, build(*args, **kwargs)), self.declaration
            )

        async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await start(asynchronous, build(*args, **kwargs))

        return _with_signature(call_async, self.declaration)


def send(client: BlockingSender, request: Request[T]) -> T:
    """Send one request and return its value."""
    return client.send(request)


async def send_async(client: AsyncSender, request: Request[T]) -> T:
    """Send one request and return its value."""
    return await client.send(request)


def iterate(client: BlockingSender, source: PagedList[T] | RecordStream[T]) -> Generator[T]:
    """Yield the records of a list, page by page, or of one response, chunk by chunk."""
    if isinstance(source, RecordStream):
        with client.open(source.request) as response:
            for chunk in response.iter_bytes():
                yield from source.feed(chunk)
            source.finish()
        return
    pages = PageReader(source)
    while pages.request is not None:
        yield from pages.new_records(client.send(pages.request))


async def iterate_async(client: AsyncSender, source: PagedList[T] | RecordStream[T]) -> AsyncGenerator[T]:
    """Yield the records of a list, page by page, or of one response, chunk by chunk."""
    if isinstance(source, RecordStream):
        async with client.open(source.request) as response:
            async for chunk in response.aiter_bytes():
                for record in source.feed(chunk):
                    yield record
            source.finish()
        return
    pages = PageReader(source)
    while pages.request is not None:
        for record in pages.new_records(await client.send(pages.request)):
            yield record


def _with_signature(method: Callable[..., Any], declaration: Declaration) -> Callable[..., Any]:
    """Give a method the name, parameters, documentation and result that ``help()`` shows."""
    functools.update_wrapper(method, declaration.function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    method.__signature__ = declaration.signature  # type: ignore[attr-defined]
    del method.__wrapped__  # type: ignore[attr-defined]  # its signature is another one
    return method
