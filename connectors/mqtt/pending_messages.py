"""The messages of a source from the inbox to their acknowledgement."""

from __future__ import annotations

from collections import deque

from connectors.mqtt.connection import Received


class PendingMessages:
    """The messages that are not acknowledged, in the order in which they arrived. ``len`` counts those that are in no batch.

    ``taken``: messages that were taken from the inbox and not processed yet.
    """

    def __init__(self) -> None:
        self.taken: deque[Received] = deque()
        self._undecided: deque[Received] = deque()
        """Messages that were given to the `RepetitionFilter` of the present reading, and that are in no batch yet."""
        self._in_batches: deque[tuple[int, Received]] = deque()
        """Messages in batches that are not durable yet. Each has the ``number`` that the cursor has after the message."""
        self._undelivered: deque[tuple[int, Received]] = deque()
        """With ``acknowledge: delivered``: durable messages with their numbers. Their entries may not be delivered yet."""
        self._durable = 0
        """The ``number`` in the stored cursor."""

    def __len__(self) -> int:
        return len(self.taken) + len(self._undecided)

    def decide(self) -> Received:
        """Return the next message, for the `RepetitionFilter`."""
        self._undecided.append(self.taken.popleft())
        return self._undecided[-1]

    def add_to_batch(self, number: int) -> None:
        """Note that the oldest message of `decide` is in a batch. The cursor has ``number`` after the message."""
        self._in_batches.append((number, self._undecided.popleft()))

    def commit(self, number: int | None = None, *, waits_for_delivery: bool) -> None:
        """Acknowledge the messages up to ``number``, which is durable (None: the last durable number).

        ``waits_for_delivery``: the messages are not acknowledged before `deliver`.
        """
        self._durable = self._durable if number is None else number
        while self._in_batches and self._in_batches[0][0] <= self._durable:
            if waits_for_delivery:
                self._undelivered.append(self._in_batches.popleft())
            else:
                self._in_batches.popleft()[1].acknowledge()

    def deliver(self, number: int) -> None:
        """Acknowledge the durable messages up to ``number``, because their entries are delivered or rejected."""
        while self._undelivered and self._undelivered[0][0] <= number:
            self._undelivered.popleft()[1].acknowledge()

    def restart(self) -> None:
        """Process the messages again that are in no durable batch, because their reading was aborted."""
        self.taken = deque([*(message for _, message in self._in_batches), *self._undecided, *self.taken])
        self._in_batches.clear()
        self._undecided.clear()

    def forget_undelivered(self) -> None:
        """Forget the durable messages that are not delivered: the broker sends them again on a new connection."""
        self._undelivered.clear()
