"""The format of a status file. Pure: text in, records out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ingestd.sdk import Reject

_LINE = re.compile(r"(?P<name>[^=\[\]]+?)\s*(?:\[(?P<unit>[^\]]*)\])?\s*=\s*(?P<value>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFile:
    """The parsed lines. ``records`` have the fields name, unit (absent if the line has none) and value.

    ``positions`` are the line numbers of ``records``, from 1. ``rejects`` are the lines that cannot be used.
    """

    records: list[dict[str, str | None]]
    positions: list[int]
    rejects: tuple[Reject, ...]


def parse(text: str) -> StatusFile:
    """Parse ``name = value`` and ``name [unit] = value``; skip empty lines and comments, which begin with ``#``.

    A value keeps its text: ``0.10`` stays ``0.10``. A line without this form is rejected, and so is the second line of a name.
    """
    records: list[dict[str, str | None]] = []
    positions: list[int] = []
    rejects: list[Reject] = []
    lines_of_names: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            reason = f"Line {number} does not have the form 'name = value'. Correct the line, or put # before it."
            rejects.append(Reject(position=number, reason=reason, record={"text": line}))
            continue
        record: dict[str, str | None] = {name: part for name, part in found.groupdict().items() if part is not None}
        first = lines_of_names.setdefault(found["name"], number)
        if first != number:
            reason = f"Line {number} repeats the name '{found['name']}' of line {first}. Remove one of the lines."
            rejects.append(Reject(position=number, reason=reason, field="name", record=record))
            continue
        records.append(record)
        positions.append(number)
    return StatusFile(records=records, positions=positions, rejects=tuple(rejects))
