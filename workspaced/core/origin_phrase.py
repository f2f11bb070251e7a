"""The phrase for people about where a value comes from."""

from __future__ import annotations


def origin_phrase(*, source: str, file: str | None, row: int | None, pipeline: str | None) -> str:
    """Return ``from run-0001.csv row 2, pipeline bench-a3``, without parts that are not given.

    The source if there is no file.
    """
    place = f"from {file or source}"
    return f"{place}{f' row {row}' if row else ''}{f', pipeline {pipeline}' if pipeline else ''}"
