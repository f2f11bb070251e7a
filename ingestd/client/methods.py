"""From functions that make requests to methods of both clients, written once.

A `Method` holds such a function. Read from a blocking client it is a function with the same parameters that sends the
request and gives the value; read from an asynchronous one, a coroutine function. The types say so, too: mypy and editors
know the parameters and the result of ``client.get_sink`` in both. The other way would have been a blocking twin of each
method, generated from the asynchronous source and held against it by a test; that is more code to read, and a step to
forget, for methods that do nothing but send.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from ingestd.client.paging import Listing, Pages
from ingestd.client.request import Request

P = ParamSpec("P")
T = TypeVar("T")


class Blocking(ABC):
    """A client whose methods return when the answer is there."""

    @abstractmethod
    def send(self, request: Request[T]) -> T:
        """The value of the answer.

        Raises:
            ServiceError: there is none.
        """


class Awaiting(ABC):
    """A client whose methods are coroutines."""

    @abstractmethod
    async def send(self, request: Request[T]) -> T:
        """The value of the answer.

        Raises:
            ServiceError: there is none.
        """


class Method(Generic[P, T]):
    """One request, one value."""

    def __init__(self, build: Callable[P, Request[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> object:
        """The method of one client."""
        build = self.build
        if client is None:
            return self
        if isinstance(client, Blocking):
            blocking = client

            def call(*args: P.args, **kwargs: P.kwargs) -> T:
                return blocking.send(build(*args, **kwargs))

            return _dressed(call, build, "{}")
        awaiting = client

        async def call_async(*args: P.args, **kwargs: P.kwargs) -> T:
            return await awaiting.send(build(*args, **kwargs))

        return _dressed(call_async, build, "{}")


class Iteration(Generic[P, T]):
    """Many requests, one record after the other."""

    def __init__(self, build: Callable[P, Listing[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Generator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncGenerator[T]]: ...

    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> object:
        """The method of one client."""
        build = self.build
        if client is None:
            return self
        if isinstance(client, Blocking):
            blocking = client

            def iterate(*args: P.args, **kwargs: P.kwargs) -> Generator[T]:
                return _all(blocking, build(*args, **kwargs))

            return _dressed(iterate, build, "Generator[{}]")
        awaiting = client

        def iterate_async(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T]:
            return _all_async(awaiting, build(*args, **kwargs))

        return _dressed(iterate_async, build, "AsyncGenerator[{}]")


def _all(client: Blocking, listing: Listing[T]) -> Generator[T]:
    pages = Pages(listing)
    while pages.request is not None:
        yield from pages.fresh(client.send(pages.request))


async def _all_async(client: Awaiting, listing: Listing[T]) -> AsyncGenerator[T]:
    pages = Pages(listing)
    while pages.request is not None:
        for record in pages.fresh(await client.send(pages.request)):
            yield record


def _dressed(method: Callable[..., Any], build: Callable[..., Any], answer: str) -> Callable[..., Any]:
    """Have ``help()`` show the parameters, the documentation and what comes back."""
    functools.update_wrapper(method, build, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    del method.__wrapped__  # type: ignore[attr-defined]  # its result is another one
    signature = inspect.signature(build)
    result = str(signature.return_annotation).partition("[")[2][:-1]
    method.__signature__ = signature.replace(return_annotation=answer.format(result))  # type: ignore[attr-defined]
    return method
