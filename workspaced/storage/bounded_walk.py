"""One page of a filtered list: the matching rows among a bounded number of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from workspaced.core.problems import Invalid
from workspaced.storage.port import Row

P = TypeVar("P")
_GROWTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked(Generic[P]):
    """The rows of a page. ``next_after``: the position after which the next page begins; None: this is the last page."""

    rows: list[Row]
    next_after: P | None


def walk(
    start: P,
    *,
    take: int,
    skip: int,
    most: int,
    matching: Callable[[P, int, int], list[Row]],
    end: Callable[[P, int], P | None],
    position: Callable[[Row], P],
    longest_step: int | None = None,
    is_spent: Callable[[], bool] = lambda: False,
) -> Walked[P]:
    """Examine rows in the list's order, at most ``most``, until ``take`` rows match after the first ``skip``.

    ``matching`` takes a position, a number of rows and a limit. It returns the matching rows among that number of rows after
    the position, up to the limit. ``end`` takes a position and a number of rows. It returns the position of the last of these
    rows; None if fewer rows follow. The first step is as long as the page, so a list without a filter costs only its page.
    Each further step is longer, up to ``longest_step`` rows. ``is_spent`` is called after each ``end``. It can end the walk
    before ``most`` rows if some rows are expensive.

    Raises:
        Invalid: ``skip`` needs more than ``most`` rows.
    """
    found: list[Row] = []
    at, walked, step = start, 0, skip + take + 1
    while True:
        count = min(step, most - walked, longest_step or most)
        found += matching(at, count, skip + take + 1 - len(found))
        if len(found) > skip + take:
            return Walked(rows=found[skip : skip + take], next_after=position(found[skip + take - 1]))
        following = end(at, count)
        if following is None:
            return Walked(rows=found[skip:], next_after=None)
        walked += count
        if walked >= most or is_spent():
            if skip:
                raise Invalid(
                    "bad_skip", f"skip may pass at most {walked} records here. Follow the Link rel=next instead."
                )
            return Walked(rows=found, next_after=following)
        at, step = following, step * _GROWTH
