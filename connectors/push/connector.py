"""The push connector: stores records that clients send. A client gets its response after its records are durable."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, ClassVar

import polars as pl

from connectors.push.endpoint import PushedMessage, PushEndpoint
from connectors.push.known_ids import KnownIds
from connectors.push.listener import PushListener
from connectors.push.options import PushOptions
from ingestd.sdk import (
    Acknowledgement,
    Batch,
    ConnectionHealth,
    Connector,
    Cursor,
    Partition,
    Reject,
    SourceContext,
    SourceUnavailable,
    Step,
    counted,
    pack,
)

_TOGETHER = 64
"""The maximum number of messages in a batch."""
_RESCAN_SECONDS = 30.0
"""The maximum wait for the next reading if messages could not be stored, for example because the state file was full."""
_READING_SECONDS = 2.0
"""A reading ends after this time even if more messages arrive. Retries and acknowledgements wait for its end."""


class PushConnector(Connector):
    """Receives records at a path of a listener. The name of the only partition is this path."""

    Options: ClassVar[type[PushOptions]] = PushOptions
    confirms_delivery = True
    options: PushOptions

    def __init__(self, options: PushOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._wake: Callable[[], None] = lambda: None
        self._endpoint = PushEndpoint(options, context, on_wake=self._wake_pipelines)
        self._listener: PushListener | None = None
        self._known = KnownIds(context.keep("known-ids"))
        self._uncommitted: list[PushedMessage] = []
        self._undelivered: deque[tuple[int, Future[str | None]]] = deque()
        """With ``acknowledge: delivered``: the waiting responses, each with the record count in the cursor of its commit."""
        self._rejection = ""

    @classmethod
    def schedule_refusal(cls, options: Any) -> str:  # noqa: ARG003 - it always listens
        """Return a sentence: a push source needs no schedule."""
        return "A push source listens all the time, and its clients decide when they send."

    def partitions(self) -> Iterable[Partition]:
        """Return the only partition; none with ``mode: wake``."""
        listener = self._listener
        if listener is not None and listener.problem:
            raise SourceUnavailable(listener.problem)
        if self.options.mode == "wake":
            return []
        return [Partition(name=self.options.path.lstrip("/"), snapshot=False, replayable=False)]

    @property
    def rescan_seconds(self) -> float:
        """The time until the next reading if no message arrives."""
        return _RESCAN_SECONDS

    @contextmanager
    def watch(self, wake: Callable[[], None]) -> Iterator[None]:
        """Listen while the context is open. A one-shot `ingestd sync` does not listen."""
        self._wake = self._endpoint.inbox.wake = wake
        self._listener = PushListener.attach(self.options.address, self.options.path, self._endpoint)
        try:
            if self.options.mode == "wake":
                self._wake_pipelines()  # a request before the restart may have had no effect
                self._endpoint.accept()
            yield
        finally:
            self._detach()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        """Yield the records of waiting messages, several messages in each batch. Repeated messages are only acknowledged."""
        self._give_back()
        stored: dict[str, Any] = dict(cursor) if cursor is not None else {}
        count, ids = _records_of(stored), stored.get("ids")  # a newer version may have written other types
        try:
            self._known.load(ids if isinstance(ids, list) else ())
        except OSError as error:
            raise SourceUnavailable(f"The ids of known messages can't be read: {error}.") from error
        if self._known.is_full:
            self._known.compact()
        self._endpoint.accept()
        until = self.context.elapsed() + _READING_SECONDS
        try:
            is_last, has_begun = False, False
            while not is_last and (taken := self._take()) is not None:
                if not taken:
                    continue
                batch = self._batch(taken, count)
                count += batch.record_count
                is_empty, is_over = not len(self._endpoint.inbox), self.context.elapsed() >= until
                is_last = is_empty or is_over or self.context.stopping.is_set()
                has_begun = True
                yield dataclasses.replace(batch, cursor={"records": count, "ids": self._known.to_token()}, last=is_last)
            if (has_begun or self._uncommitted) and not is_last:  # all messages of the last `_take` were known
                yield pack([], cursor={"records": count, "ids": self._known.to_token()}, last=True)
            if len(self._endpoint.inbox):
                self._wake()
        finally:
            self._give_back()

    def _give_back(self) -> None:
        """Respond with 503 to each message that the runtime could not store, so that the client sends it again."""
        if self._uncommitted:
            self._endpoint.pause()
            for message in self._uncommitted:
                message.stored.set_result(None)
            self._uncommitted = []

    def _take(self) -> list[PushedMessage] | None:
        """Return the new messages of the next batch; None if no message waits.

        All messages of a batch have the same fields: otherwise a field that a message lacks would be read as empty.
        """
        taken = self._endpoint.inbox.take(_TOGETHER, alike=lambda first, one: first.fields == one.fields)
        if not taken:
            return None
        fresh: list[PushedMessage] = []
        for message in taken:
            if not message.stored.set_running_or_notify_cancel():
                continue
            if message.id and message.id in self._known:
                # The first message with this id may be in this batch (not durable yet), or may be stored but not delivered yet.
                if self._waits_for_delivery or any(one.id == message.id for one in fresh):
                    self._uncommitted.append(message)
                else:
                    message.stored.set_result("")
                continue
            if message.id:
                self._known.add(message.id)
            fresh.append(message)
            self._uncommitted.append(message)
        return fresh

    def _batch(self, messages: Iterable[PushedMessage], count: int) -> Batch:
        """Return the records of some messages as a batch. Positions are consecutive numbers from ``count`` + 1."""
        frames: list[pl.DataFrame] = []
        positions: list[int] = []
        rejects: list[Reject] = []
        for chunk in (chunk for message in messages for chunk in message.chunks):
            # The positions that the format has set give the order of records and rejects within a chunk.
            numbers = {position: count + at for at, position in enumerate(_ordered(chunk.positions, chunk.rejects), 1)}
            count += len(numbers)
            frames.append(chunk.records)
            positions += [numbers[position] for position in chunk.positions]
            rejects += [dataclasses.replace(one, position=numbers[one.position]) for one in chunk.rejects]
        records = pl.concat(frames, how="diagonal") if frames else pack([], cursor={}).records
        return Batch(
            records=records,
            positions=pl.Series("position", positions, dtype=pl.Int64),
            cursor={},
            facts={"push.path": self.options.path},
            rejects=tuple(rejects),
        )

    def batch_rejected(self, partition: Partition, reason: str) -> None:  # noqa: ARG002 - one partition
        """Keep the reason why all records of the batch are rejected; the responses have this reason."""
        self._rejection = reason

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: ARG002 - one partition, and one batch at a time
        """Acknowledge the requests of the batch, unless they must wait for the delivery of the entries."""
        messages, self._uncommitted = self._uncommitted, []
        rejection, self._rejection = self._rejection, ""
        for message in messages:
            if self._waits_for_delivery and not rejection:
                self._undelivered.append((_records_of(cursor), message.stored))
            else:
                message.stored.set_result(rejection)
        self._known.compact()

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002 - one partition
        """Acknowledge the requests up to the cursor, because their entries are delivered or rejected."""
        while self._undelivered and self._undelivered[0][0] <= _records_of(cursor):
            self._undelivered.popleft()[1].set_result("")

    def health(self) -> ConnectionHealth | None:
        """Return the state of the listener."""
        listener = self._listener
        if listener is None:
            return ConnectionHealth(sentence="It does not listen: only the running daemon does.")
        refused = (
            f" {counted(self._endpoint.refused, 'request')} got status 429 or 503." if self._endpoint.refused else ""
        )
        waiting = len(self._endpoint.inbox)
        state = listener.problem or f"It listens at http://{self.options.address}{self.options.path}; {waiting} wait."
        return ConnectionHealth(
            sentence=state + refused, connected_since=listener.since if not listener.problem else None
        )

    def verify(self) -> Iterable[Step]:
        """Report the address at which the daemon listens. The check does not listen: the daemon may use the address."""
        kind = "a bearer token" if self.options.auth.type == "bearer" else "signatures of Standard Webhooks"
        sentence = (
            f"Clients send to http://{self.options.address}{self.options.path} with {kind}, while the daemon runs."
        )
        return [Step(name="listener", outcome="passed", sentence=sentence)]

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - the cursor is not needed
        """Return why no messages are received; None if the source listens, or if ``name`` is not the partition."""
        if name != self.options.path.lstrip("/"):
            return None
        return self._listener.problem or None if self._listener is not None else "Only the running daemon listens."

    def interrupt(self) -> None:
        """Respond to all further requests with status 503."""
        self._endpoint.inbox.close()

    def close(self) -> None:
        """Stop serving the path. Messages that were not acknowledged get 503, so that clients send them again."""
        self._endpoint.inbox.close()
        self._endpoint.pause()
        while self._undelivered:
            self._undelivered.popleft()[1].set_result(None)
        self._detach()

    @property
    def _waits_for_delivery(self) -> bool:
        return self.options.acknowledge == "delivered"

    def _detach(self) -> None:
        if self._listener is not None:
            self._listener.detach(self.options.path, self._endpoint)
            self._listener = None

    def _wake_pipelines(self) -> None:
        for pipeline in self.options.wakes:
            self.context.wake(pipeline)


def _records_of(cursor: Cursor) -> int:
    count = cursor.get("records")
    return count if isinstance(count, int) else 0


def _ordered(positions: Iterable[int | str], rejects: Iterable[Reject]) -> list[int | str]:
    found = dict.fromkeys([*positions, *(one.position for one in rejects)])
    rows = [one for one in found if isinstance(one, int)]
    return [*sorted(rows), *(one for one in found if isinstance(one, str))]
