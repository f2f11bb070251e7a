from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from connectors.files.file_batches import read_ahead

DEADLINE_SECONDS = 30.0


def test_the_items_arrive_in_order_and_an_empty_source_yields_nothing() -> None:
    assert list(read_ahead(iter(range(100)))) == list(range(100))
    assert list(read_ahead(iter(()))) == []


def test_the_next_item_is_made_while_the_caller_works() -> None:
    made = [threading.Event() for _ in range(3)]

    def items() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    for number in read_ahead(items()):
        if number + 1 < len(made):
            assert made[number + 1].wait(DEADLINE_SECONDS), "the caller works, and nothing is read"


def test_only_one_item_waits_however_slow_the_caller_is() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    for number in read_ahead(items()):
        assert len(made) <= number + 2


def test_a_failure_arrives_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("row 3")

    found: list[int] = []
    with pytest.raises(ValueError, match="row 3"):
        found.extend(read_ahead(items()))
    assert found == [1, 2]


def test_no_item_is_being_made_after_the_caller_stopped() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        begun.set()
        assert may_end.wait(DEADLINE_SECONDS)
        ended.set()
        yield 2

    reading = read_ahead(items())
    assert next(reading) == 1
    assert begun.wait(DEADLINE_SECONDS)
    may_end.set()
    reading.close()
    assert ended.is_set()
