"""Exports as streams: a page is read in a thread after the client has accepted the previous page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ingestd.commands.rejected_export import RejectionExport

MAX_EXPORTS = 4

Stream = Callable[[], AsyncGenerator[bytes, None]]


class ExportStreams:
    """Streams of exports. ``in_thread`` runs a call that reads a page.

    Between two pages, an export has no thread and no open file, so a slow client delays no other page. If a client leaves or
    accepts no data, the server ends its stream.
    """

    def __init__(self, in_thread: Callable[[Callable[[], str | None]], Awaitable[str | None]]) -> None:
        self._in_thread = in_thread
        self._running = 0

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of exports is being read or sent."""
        return self._running >= MAX_EXPORTS

    async def begin(self, export: RejectionExport) -> Stream:
        """Read the beginning of an export. Return a stream of the whole export.

        Raises:
            IngestdError: see `RejectionExport.pages`.
        """
        pages = export.pages()
        with self._counted():
            first = await self._next(pages)

        async def stream() -> AsyncGenerator[bytes, None]:
            with self._counted():
                text = first
                while text is not None:
                    yield text.encode()
                    text = await self._next(pages)

        return stream

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _next(self, pages: Iterator[str]) -> str | None:
        """Return the next page with text; None after the last page."""
        text: str | None = ""
        while text == "":
            text = await self._in_thread(partial(next, pages, None))
        return text
