"""The phrase that says where a value comes from."""

from __future__ import annotations


def origin_phrase(*, source: str, file: str | None, row: int | None, pipeline: str | None) -> str:
    """Return a phrase like ``from run-0001.csv row 2, pipeline bench-a3``, without parts that are not given.

    Without a file, the phrase names the source.
    """
    place = f"from {file or source}"
    return f"{place}{f' row {row}' if row else ''}{f', pipeline {pipeline}' if pipeline else ''}"
