"""The search for repeated and nested records in a sample, at N and at 4 N, as for the formats that read it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.commands.initial_configuration.elements import nested_identifiers, repeated_elements
from tests.growth.test_formats import GROWTH, NEGLIGIBLE

N = 5_000


def nested(depth: int) -> object:
    """Return lists of objects in each other, as the decoder gives them."""
    value: object = {"n": 1}
    for at in range(depth):
        value = {"n": 1, f"k{at}": [value]}
    return value


DOCUMENTS: dict[str, Callable[[int], str]] = {
    "names": lambda n: "<r>" + "".join(f"<k{at}/>" for at in range(n)) + "</r>",
    "depth": lambda n: "<r>" + "<a>" * n + "</a>" * n + "</r>",
    "names in depth": lambda n: (
        "".join(f"<k{at}>" for at in range(n)) + "".join(f"</k{at}>" for at in reversed(range(n)))
    ),
}


def seconds(work: Callable[[], object]) -> float:
    gc.disable()  # a collection counts all objects of the process
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        gc.enable()


def require_linear(work: Callable[[int], Callable[[], object]]) -> None:
    """Compare the processor time at two sizes; on a busy machine, the larger one is measured twice."""
    large = seconds(work(4 * N))
    if large > NEGLIGIBLE:
        small = max(seconds(work(N)), NEGLIGIBLE / GROWTH)
        assert min(large, seconds(work(4 * N))) <= GROWTH * small


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_elements_are_counted_in_time_linear_in_the_document(kind: str, tmp_path: Path) -> None:
    def work(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.xml"
        path.write_text(DOCUMENTS[kind](size), encoding="ascii")
        return lambda: repeated_elements(path)

    require_linear(work)


def test_objects_are_searched_in_time_linear_in_their_depth() -> None:
    def work(size: int) -> Callable[[], object]:
        document = nested(size)
        return lambda: nested_identifiers(document)

    require_linear(work)
