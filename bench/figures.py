"""Figures of rounds: medians, spreads, ratios within a round, and their output."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


class Ratio(float):
    """The median of a ratio over the rounds, with its lowest and its highest value."""

    lowest: float
    highest: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Ratio:
        """Return the median of ``values`` with the lowest and the highest value. ``values`` must not be empty."""
        ratio = cls(statistics.median(values))
        ratio.lowest, ratio.highest = min(values), max(values)
        return ratio


@dataclass(slots=True)
class Rounds:
    """The values of each figure, by name. Each round measures all figures, so that noise affects them equally."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        return statistics.median(self.values[name])

    def spread(self, name: str, show: Callable[[float], str]) -> str:
        """Return the median and, if the shown values differ, the lowest and the highest as text; "-" without values."""
        values = self.values.get(name)
        if not values:
            return "-"
        shown, low, high = show(statistics.median(values)), show(min(values)), show(max(values))
        return shown if low == high else f"{shown} ({low}-{high})"

    def ratio(self, over: str, under: str) -> Ratio | None:
        """Return the ratio of ``over`` to ``under``, taken within each round; None if a figure was not measured."""
        pairs = zip(self.values.get(over, ()), self.values.get(under, ()), strict=False)
        ratios = [a / b for a, b in pairs if b]
        return Ratio.over(ratios) if ratios else None

    def count(self, name: str) -> int:
        return len(self.values.get(name, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a benchmark. ``ratios``: (name, ratio, expected ratio in words)."""

    name: str
    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    ratios: Sequence[tuple[str, float | None, str]]
    notes: Sequence[str]
    summary: dict[str, object]

    def results(self) -> dict[str, object]:
        """Return the figures for a result file: the summary, and each ratio with its range and aim."""
        return {
            **self.summary,
            "ratios": {
                name: {
                    "median": ratio,
                    "lowest": ratio.lowest if isinstance(ratio, Ratio) else ratio,
                    "highest": ratio.highest if isinstance(ratio, Ratio) else ratio,
                    "aim": aim,
                }
                for name, ratio, aim in self.ratios
            },
        }

    def print(self) -> None:
        print(f"\n{self.title}")
        table(self.header, self.lines)
        if self.ratios:
            print()
            table(
                ("ratio", "measured", "to reach"),
                [(name, "-" if ratio is None else f"{ratio:.2f}", aim) for name, ratio, aim in self.ratios],
            )
        for note in self.notes:
            print(f"  {note}")
        ratios = {name: None if ratio is None else round(ratio, 3) for name, ratio, _ in self.ratios}
        print(json.dumps({"benchmark": self.name, **self.summary, "ratios": ratios}), flush=True)


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a header and lines in aligned columns."""
    rows = [tuple(header), *(tuple(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for index, row in enumerate(rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        print("  " + "  ".join(cells).rstrip())
        if index == 0:
            print("  " + "  ".join("-" * width for width in widths))


def thousands(value: float) -> str:
    return f"{value / 1000:,.0f}".replace(",", " ")


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def milliseconds(value: float) -> str:
    return f"{value * 1000:.2f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value V of ``values`` for which at least ``percent`` % of the values are at most V."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
