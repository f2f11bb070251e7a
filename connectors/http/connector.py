"""The http connector: on a schedule, it reads all records, or the records that changed since the last reading."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import polars as pl
from msgspec.structs import replace

from connectors.formats.ndjson.block import CELLS, read_texts
from connectors.http.boundary import Boundary, future_changes
from connectors.http.collection import Collected, Faulty, collect
from connectors.http.exchange import AccessRefused, PageExchange, PageResponse, Validator, conditions, display
from connectors.http.options import HttpOptions, SinceOptions
from connectors.http.since import ChangeMark
from connectors.http.spool import Block, Spool, Stored, digest_of, open_spool
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    Partition,
    SourceContext,
    SourceError,
    SourceUnavailable,
    Step,
    counted,
    mark_last,
    pack,
)
from ingestd.sdk.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation

T = TypeVar("T")

_SAMPLE = 100
_MOST_VALIDATORS = 100
"""If a reading has more pages, the cursor has no validators. This keeps the cursor small."""
_MOVED = "The records of {url} moved between its pages during the reading, so no entry was removed. The next reading tries again."
_FEWER = "{url} states {totals} as the number of all records, but sent {records}{effect}. Check page, params and total."


class HttpConnector(Connector):
    """A resource of an HTTP service. The name of the only partition is the path of the resource's URL."""

    Options: ClassVar[type[HttpOptions]] = HttpOptions
    options: HttpOptions
    scheduled_only: ClassVar[bool] = True

    def __init__(self, options: HttpOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        if options.ca_file is not None:
            self.options = options.model_copy(update={"ca_file": context.base / options.ca_file})
        self._exchange = PageExchange(self.options)
        self._task: asyncio.Task[Any] | None = None
        self._interrupted = False
        self._refused = ""
        self._forgotten = False
        self._notices: Sequence[str] = ()

    def partitions(self) -> Iterable[Partition]:
        """Return the only partition. This sends no request."""
        return [Partition(name=self._name(), snapshot=self.options.mode == "snapshot", deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        """Read all pages, then yield the records. So a lost connection causes no partial reading."""
        known = cursor if cursor is not None and not self._forgotten and self._describes(cursor) else {}
        with open_spool() as spool:
            yield from self._snapshot(spool, known) if self.options.since is None else self._incremental(spool, known)
        self._forgotten = False

    def verify(self) -> Iterable[Step]:
        """Check that the service sends a first page with records."""
        name = "connection"
        try:
            with open_spool() as spool:
                since = self.options.since
                extra = _asked(since, since.start) if since is not None else {}
                found = self._collect(spool, extra, most_pages=1)
                yield Step(name=name, outcome="passed", sentence=f"{display(self.options.url)} responds.")
                name = "records"
                some = [text for block in spool.blocks(spool.stored[:_SAMPLE]) for _, text in block]
                chunk = next(read_texts(some, RecordLocation(), RECORD_BYTES, CELLS, unit="Item"), None)
                rejects = [one.reject for one in found.faulty] + list(chunk.rejects if chunk is not None else ())
                if rejects:
                    yield Step(name=name, outcome="failed", sentence=rejects[0].reason)
                    return
                names = ", ".join(chunk.records.columns) if chunk is not None and some else "no fields"
                yield Step(
                    name=name,
                    outcome="passed",
                    sentence=f"The first page has {counted(found.records, 'record')}: {names}.",
                    fields=tuple(chunk.records.columns) if chunk is not None else (),
                )
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - only the schedule matters
        """Return a sentence about the schedule, or about refused credentials; None if ``name`` is not the partition."""
        if name != self._name():
            return None
        return self._refused or f"{display(self.options.url)} is read on its schedule (mode: {self.options.mode})."

    def notices(self) -> Iterable[str]:
        """Return sentences about records that the last reading may have missed, about wrong times, and about equal keys."""
        return self._notices

    def reset(self) -> None:
        """Read everything at the next reading, and try refused credentials again. An operator requested this."""
        self._forgotten = True
        self.resume()

    def resume(self) -> None:
        """Try refused credentials again at the next reading."""
        self._refused = ""

    def interrupt(self) -> None:
        """Cancel a running request, and all later requests of this source."""
        self._interrupted = True
        task = self._task
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    # ---------------------------------------------------------------------------------------------------------- snapshot

    def _snapshot(self, spool: Spool, cursor: Cursor) -> Iterator[Batch]:
        first: PageResponse | None = None
        pages = cursor.get("pages")
        if isinstance(pages, list) and pages:
            is_same, first = self._run(lambda: self._ask(pages))
            if is_same:
                return
        found = self._collect(spool, {}, first=first)
        chosen = spool.latest()
        keys = [one.key for one in chosen]
        fits = found.fits_total(keys)
        is_whole = self.options.deletes == "keep" or found.is_complete(keys) or self._finds_again(chosen)
        moved = () if is_whole or not fits else (_MOVED.format(url=display(self.options.url)),)
        effect = "" if is_whole else ", so no entry was removed"
        self._notices = (*moved, *self._contradictions(found, keys, effect=effect), *self._equal_keys(keys))
        end = {**self._origin, "pages": _storable(found.validators) if is_whole and fits else []}
        begin = self._origin
        for batch in mark_last(self._batches(spool, chosen, found.faulty, begin, lambda _: begin)):
            yield dataclasses.replace(batch, partial=not is_whole, cursor=end if batch.last else batch.cursor)

    def _contradictions(self, found: Collected, keys: Sequence[str], *, effect: str = "") -> Iterator[str]:
        """Yield a sentence if the total that the service states contradicts the records. ``effect``: its last words."""
        if not found.fits_total(keys):
            totals = " and ".join(map(str, sorted(found.totals)))
            records = counted(found.records, "record")
            yield _FEWER.format(url=display(self.options.url), totals=totals, records=records, effect=effect)

    def _equal_keys(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield a sentence if different records of one page have the same key."""
        repeated = [key for key, number in Counter(filter(None, keys)).items() if number > 1]
        if repeated:
            yield (
                f"{display(self.options.url)} has different records with the same key on one page, such as {repeated[0]} (keys:"
                f" {len(repeated)}). All of them are read. Set key to the fields that identify a record."
            )

    async def _ask(self, pages: Sequence[Validator]) -> tuple[bool, PageResponse | None]:
        """Return whether all pages are unchanged since the last reading; if the first page has changed, also this page."""
        for number, page in enumerate(pages):
            response = await self._exchange.get(page["target"], conditions(page))
            if response.status != 304:
                return False, response if number == 0 else None
        return True, None

    def _finds_again(self, chosen: Sequence[Stored]) -> bool:
        """Read all pages again. Return whether they have the keys of ``chosen``, and no total contradicts these keys."""
        with open_spool() as second:
            found = self._collect(second, {})
            keys = {one.key for one in second.stored}
            return keys == {one.key for one in chosen} and found.fits_total(keys)

    # ------------------------------------------------------------------------------------------------------- incremental

    def _incremental(self, spool: Spool, cursor: Cursor) -> Iterator[Batch]:
        since = self.options.since
        if since is None:
            raise AssertionError("only called with since")
        now = self.context.now()
        boundary = Boundary(cursor, overlap=since.overlap, now=now)
        asked = boundary.asked or since.start
        found = self._collect(spool, _asked(since, asked))
        keys = [one.key for one in spool.stored]
        self._notices = (*self._contradictions(found, keys), *self._future(future_changes(spool, now), since))
        fresh = boundary.divide(spool)
        faulty = boundary.new_faults(found.faulty)
        if fresh or faulty:
            known = {**cursor, **self._origin}
            yield from mark_last(
                self._batches(spool, fresh, faulty, known, lambda block: {**self._origin, **boundary.pass_over(block)})
            )

    def _future(self, changes: Sequence[ChangeMark], since: SinceOptions) -> Iterator[str]:
        """Yield a sentence if records have a time in the future."""
        if changes:
            yield (
                f"{display(self.options.url)} has {counted(len(changes), 'record')} with a time in the future in the field"
                f" {since.field}, such as {changes[0].text}. They are read, and the next readings begin at an earlier time."
                " Correct the times in the service, and check the clock of this machine."
            )

    # ------------------------------------------------------------------------------------------------------------ batches

    def _batches(
        self,
        spool: Spool,
        chosen: Sequence[Stored],
        faulty: Sequence[Faulty],
        cursor: Cursor,
        cursor_after: Callable[[Block], Cursor],
    ) -> Iterator[Batch]:
        """Yield the chosen records and the rejections in at least one batch.

        ``cursor``: the cursor before the first block. ``cursor_after`` returns the cursor after a block. It is called for each
        block, in order.
        """
        facts = {"http.url": display(self.options.url)}
        rejects = tuple(one.reject for one in faulty)
        blocks: Iterator[Block] = spool.blocks(chosen)
        for block in blocks:
            before, cursor = cursor, cursor_after(block)
            numbers = RecordLocation(row=0 if self.options.keys else block[0][0].number - 1)
            texts = [text for _, text in block]
            chunks = list(read_texts(texts, numbers, RECORD_BYTES, CELLS, unit="Item"))
            for number, chunk in enumerate(chunks, start=1):
                # A block has several chunks if its records share few names. Only the last chunk gets the block's cursor.
                reached = cursor if number == len(chunks) else before
                yield dataclasses.replace(
                    self._placed(chunk, block).to_batch(reached, facts), rejects=(*chunk.rejects, *rejects)
                )
                rejects = ()
        if not chosen:
            yield dataclasses.replace(pack([], cursor=cursor_after([]), facts=facts), rejects=rejects)

    def _placed(self, chunk: RecordChunk, block: Block) -> RecordChunk:
        """Return the chunk, with the keys as positions if the option ``key`` is set."""
        if not self.options.keys:
            return chunk
        keys = [block[number - 1][0].key for number in chunk.positions]
        return replace(chunk, positions=pl.Series("position", keys, dtype=pl.String))

    def _collect(self, spool: Spool, extra: Mapping[str, str], **more: Any) -> Collected:
        return self._run(lambda: collect(self.options, self._exchange, spool, extra, **more))

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run requests in a new event loop. Close the connections afterwards: none is open between readings."""
        if self._refused:
            raise AccessRefused(self._refused)

        async def begin() -> T:
            self._task = asyncio.current_task()
            if self._interrupted:
                raise asyncio.CancelledError
            try:
                return await work()
            finally:
                await self._exchange.close()

        try:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                return runner.run(begin())
        except asyncio.CancelledError:
            raise SourceUnavailable(f"The reading of {display(self.options.url)} was interrupted.") from None
        except AccessRefused as error:
            self._refused = (
                f"{error} Nothing is requested until `ingestd reload`, because attempts may lock the account."
            )
            raise AccessRefused(self._refused) from None
        finally:
            self._task = None

    def _name(self) -> str:
        parts = urlsplit(self.options.url)
        return parts.path.strip("/") or str(parts.hostname)

    @cached_property
    def _origin(self) -> dict[str, str]:
        """The members of the cursor that identify the options for which the cursor is valid."""
        of = digest_of(json.dumps(self.options.identity(), sort_keys=True).encode())
        sent = self.options.request_settings()
        return {"of": of, **({"request": _checksum(sent, salt=of)} if sent else {})}

    def _describes(self, cursor: Cursor) -> bool:
        """Return whether the cursor is from a reading with the present options."""
        return all(cursor.get(name) == self._origin.get(name) for name in ("of", "request"))


def _checksum(settings: Mapping[str, Any], *, salt: str) -> str:
    """Return a checksum of settings with secrets, for a cursor.

    It has only 16 bits, and each attempt to guess is expensive. So a person who reads the state file can't find or confirm a
    secret. One of 65,536 changes of the settings stays undetected.
    """
    text = json.dumps(settings, sort_keys=True).encode()
    return hashlib.scrypt(text, salt=salt.encode(), n=2**14, r=8, p=1, dklen=2).hex()


def _storable(validators: Sequence[Validator | None]) -> list[Validator]:
    """Return the validators to store in a cursor; an empty list if a page has no validator, or if there are too many."""
    known = [validator for validator in validators if validator is not None]
    return known if len(known) == len(validators) <= _MOST_VALIDATORS else []


def _asked(since: SinceOptions, value: str) -> dict[str, str]:
    return {since.param: since.value.replace("{since}", value)} if value else {}
