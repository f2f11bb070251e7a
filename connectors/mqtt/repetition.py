"""Recognizes stored messages that a broker repeats because their acknowledgement was lost.

A broker that has the session repeats unacknowledged messages in the original order and with the same packet numbers.
Acknowledgements are sent in order. So the repeated messages are the last of the stored messages, followed by new messages. A
single message with a known packet number proves nothing, because numbers are used again. So a message counts as repeated only
if the messages after it continue the sequence of stored messages up to the last stored message. The rule is wrong only if the
broker reuses numbers at once, and new messages have the topics and payloads of the last stored messages, in the same order.
Then no value is lost, because the last value of each topic is stored already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from connectors.mqtt.connection import IN_FLIGHT, Received


class RepetitionFilter:
    """Divides messages into new messages and repeated messages. Repeated messages need only an acknowledgement.

    ``recent``: packet number and digest of each of the last stored messages.
    """

    def __init__(self, recent: Sequence[tuple[int, str]]) -> None:
        self._recent = list(recent)[-IN_FLIGHT:]
        self._connection: object = None
        self._next: int | None = None
        self._is_open = False
        self._held: deque[Received] = deque()

    @property
    def holds(self) -> bool:
        """True if messages are held until the next message shows whether they are repeated."""
        return bool(self._held)

    def add(self, message: Received) -> Iterator[tuple[Received, bool]]:
        """Add a message. Yield the messages that are now decided, in order, each with True if it is to be read."""
        if message.connection is not self._connection:
            yield from self.flush()
            self._connection = message.connection
            self._next = None
            self._is_open = message.connection.session_present
        if message.facts is None or not message.qos:
            if self._held:
                self._held.append(message)
            else:
                yield message, message.facts is not None
            return
        if self._is_open and message.repeated and self._continues(message):
            self._held.append(message)
            if self._next == len(self._recent):
                self._is_open = False
                while self._held:
                    held = self._held.popleft()
                    yield held, not held.qos and held.facts is not None
            return
        yield from self.flush()
        yield self._note(message), True

    def flush(self) -> Iterator[tuple[Received, bool]]:
        """Yield the held messages as new messages, because storing a message twice is better than losing a message."""
        self._is_open = False
        while self._held:
            held = self._held.popleft()
            yield (held, False) if held.facts is None else (self._note(held), True)

    def _continues(self, message: Received) -> bool:
        """Return whether the message continues the sequence of stored messages. The sequence may start at any of these."""
        one = (message.packet, message.digest)
        if self._next is None:
            at = next((at for at in reversed(range(len(self._recent))) if self._recent[at] == one), None)
            if at is None:
                return False
            self._next = at
        elif self._recent[self._next] != one:
            return False
        self._next += 1
        return True

    def _note(self, message: Received) -> Received:
        if message.qos:
            self._recent.append((message.packet, message.digest))
            del self._recent[:-IN_FLIGHT]
        return message
