"""Letters in a sample that do not prove its guessed encoding. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.commands.initial_configuration.sample import SampleRecords

_ROWS = 2000
_SHOWN = 3
_WESTERN = "windows-1252"
_PROOF = frozenset("äöüÄÖÜß°µ§·±²€„“”…\N{EN DASH}")
"""Letters and signs of German tables, which need no decision: most of them have the same bytes in other encodings, and the
guess considers the other letters."""


def unproven_letters(records: SampleRecords, encoding: str) -> list[str]:
    """Return some texts with bytes that may be other letters in another encoding; empty if there are no such texts."""
    found = (text for text in _texts(records) if not text.isascii())
    if encoding == _WESTERN:
        found = (text for text in found if not {one for one in text if not one.isascii()} <= _PROOF)
    return list(dict.fromkeys(found))[:_SHOWN]


def _texts(records: SampleRecords) -> Iterator[str]:
    for fact in records.facts.items():
        yield from fact
    yield from records.first.columns
    for cells in records.first.head(_ROWS).iter_rows():
        yield from filter(None, cells)
