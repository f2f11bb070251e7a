"""Comparison of two result files: the ratios that differ by more than their spread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Direction: TypeAlias = Literal["slower", "faster", "changed"]

TOLERANCE = 0.1
"""Relative differences of medians up to this value are not reported, because a run of one round has no spread."""


class ResultsUnusable(Exception):
    """A file has no usable results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median, lowest and highest value of a ratio over the rounds of a run."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A ratio that differs. ``direction`` is "changed" if the aim of the ratio does not say whether less is better."""

    benchmark: str
    ratio: str
    direction: Direction
    before: Spread
    after: Spread

    def __str__(self) -> str:
        times = self.after.median / self.before.median if self.before.median else float("inf")
        return f"{self.direction}: {self.benchmark}: {self.ratio}: {self.before} -> {self.after}, {times:.2f} times"


def read_results(path: Path) -> dict[str, Any]:
    """Return the benchmarks of a file that ``--json`` wrote, by name.

    Raises:
        ResultsUnusable: the file can't be read, or has no results.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ResultsUnusable(
            f"{path} can't be read: {error}. Write it with 'python -m bench ... --json FILE'."
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("benchmarks"), dict):
        raise ResultsUnusable(f"{path} has no results. Write it with 'python -m bench ... --json FILE'.")
    benchmarks: dict[str, Any] = found["benchmarks"]
    return benchmarks


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return the ratios that differ between two runs. Ratios that became slower come first.

    A ratio differs if its medians differ by more than `TOLERANCE` and the ranges of its rounds do not overlap.
    Benchmarks and ratios that only one run has are left out.
    """
    found = [
        difference
        for name in before.keys() & after.keys()
        for difference in _differences(name, before[name]["ratios"], after[name]["ratios"])
    ]
    order: list[Direction] = ["slower", "changed", "faster"]
    return sorted(found, key=lambda one: (order.index(one.direction), one.benchmark, one.ratio))


def _differences(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for ratio in before.keys() & after.keys():
        old, new = _spread(before[ratio]), _spread(after[ratio])
        if old is None or new is None or (old.low <= new.high and new.low <= old.high):
            continue
        if abs(new.median - old.median) <= TOLERANCE * abs(old.median):
            continue
        direction = _direction(str(after[ratio]["aim"]), grew=new.median > old.median)
        yield Difference(benchmark=name, ratio=ratio, direction=direction, before=old, after=new)


def _spread(ratio: Mapping[str, Any]) -> Spread | None:
    if ratio["median"] is None:
        return None
    return Spread(median=ratio["median"], low=ratio["lowest"], high=ratio["highest"])


def _direction(aim: str, *, grew: bool) -> Direction:
    if aim.endswith("or more"):
        return "faster" if grew else "slower"
    if aim.endswith("or less") or aim.startswith(("under ", "less than ")):
        return "slower" if grew else "faster"
    return "changed"
