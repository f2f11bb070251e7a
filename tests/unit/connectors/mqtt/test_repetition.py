"""What a broker repeats is recognized, and a new message never is taken for a repeated one."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.mqtt.connection import Received
from connectors.mqtt.repetition import RepetitionFilter


def message(
    connection: Any, packet: int, payload: str, *, topic: str = "t", repeated: bool = True, qos: int = 1
) -> Received:
    return Received(
        connection=connection, packet=packet, qos=qos, repeated=repeated, topic=topic, facts={"mqtt.topic": topic},
        payload=payload.encode(), size=len(payload), arrived=0.0,
    )  # fmt: skip


def stored(*messages: Received) -> list[tuple[int, str]]:
    return [(one.packet, one.digest) for one in messages]


def new_ones(known: list[tuple[int, str]], *messages: Received) -> list[str]:
    found = RepetitionFilter(known)
    decided = [pair for one in messages for pair in found.add(one)] + list(found.flush())
    assert [one for one, _ in decided] == list(messages)
    return [one.payload.decode() for one, is_new in decided if is_new]


SAME = SimpleNamespace(session_present=True)
LOST = SimpleNamespace(session_present=False)


def test_what_is_stored_is_known_and_what_follows_is_new() -> None:
    first, second, third = (message(SAME, number, f"{number}") for number in (1, 2, 3))
    assert new_ones(stored(first, second), first, second, third) == ["3"]
    assert new_ones(stored(first, second), second, third) == ["3"]


def test_a_packet_number_that_is_used_again_for_the_same_payload_is_new() -> None:
    one, two = message(SAME, 1, "a"), message(SAME, 2, "b")
    assert new_ones(stored(one, two), one) == ["a"]
    assert new_ones(stored(one, two), one, message(SAME, 2, "c")) == ["a", "c"]


def test_nothing_is_known_in_a_new_session_or_if_the_broker_sends_it_for_the_first_time() -> None:
    assert new_ones(stored(message(LOST, 1, "a")), message(LOST, 1, "a")) == ["a"]
    assert new_ones(stored(message(SAME, 1, "a")), message(SAME, 1, "a", repeated=False)) == ["a"]


def test_messages_without_acknowledgement_between_repeated_ones_keep_their_order() -> None:
    one, two = message(SAME, 1, "a"), message(SAME, 2, "b")
    assert new_ones(stored(one, two), one, message(SAME, 0, "x", qos=0), two) == ["x"]


class ModelBroker:
    """Gives out the lowest free number, or the next of many, and repeats in order what is not acknowledged."""

    def __init__(self, published: list[tuple[str, str]], window: int, *, lowest: bool) -> None:
        self.waiting = list(enumerate(published))
        self.window = window
        self.lowest = lowest
        self.last = 0
        self.flight: list[tuple[int, int, tuple[str, str], bool]] = []

    def connect(self) -> list[tuple[int, Received]]:
        """Return what arrives on a new connection, each with its serial number."""
        while self.waiting and len(self.flight) < self.window:
            serial, one = self.waiting.pop(0)
            used = {packet for packet, *_ in self.flight}
            self.last = next(n for n in range(1, 99) if n not in used) if self.lowest else self.last + 1
            self.flight.append((self.last, serial, one, False))
        sent = [
            (serial, message(SAME, packet, value, topic=topic, repeated=was))
            for packet, serial, (topic, value), was in self.flight
        ]
        self.flight = [(packet, serial, one, True) for packet, serial, one, _ in self.flight]
        return sent

    def acknowledged(self, count: int) -> None:
        del self.flight[:count]


@pytest.mark.parametrize("lowest", [True, False])
def test_over_random_cuts_the_last_values_are_right_and_no_message_is_lost(*, lowest: bool) -> None:
    known = 0
    for seed in range(150):
        rng = random.Random(seed)
        published = [(rng.choice("tu"), rng.choice("ab")) for _ in range(30)]
        broker = ModelBroker(published, window=rng.randrange(1, 5), lowest=lowest)
        recent: list[tuple[int, str]] = []
        read: list[int] = []
        while broker.waiting or broker.flight:
            sent = broker.connect()
            found = RepetitionFilter(recent)
            arrived = sent[: rng.randrange(len(sent) + 1)]  # the connection is cut after these
            serials = {id(one): serial for serial, one in arrived}
            decided = [pair for _, one in arrived for pair in found.add(one)] + list(found.flush())
            handled = decided[: rng.randrange(len(decided) + 1)]  # the process is killed after these are stored
            for one, is_new in handled:
                known += not is_new
                if is_new:
                    read.append(serials[id(one)])
                    recent = [*recent, (one.packet, one.digest)]
            broker.acknowledged(rng.randrange(len(handled) + 1))  # the last acknowledgements did not arrive
        assert dict(published[serial] for serial in read) == dict(published), seed
        # With numbers that are used again at once, only a message that repeats the last values can be taken for a known one.
        assert lowest or set(read) == set(range(30)), seed
    assert known > 100
