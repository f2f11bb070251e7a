"""The format and records of a sample file, and decisions that the file itself does not prove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ingestd.commands.initial_configuration.sample import FormatSettings, SampleRecords
from ingestd.commands.initial_configuration.table_layout import TableLayout


class Decisions(Protocol):
    """The options of the command, and the decisions of a person."""

    def given(self, option: str, /) -> str | None:
        """Return the value of an option; None if it was not given."""

    def decide(self, option: str, doubt: str, proposal: str, /, *, choices: Sequence[str] = ()) -> str:
        """Return the value of an option, or the decision of a person. ``doubt``: a sentence on why a decision is needed.

        ``choices``: the possible decisions; empty: any text.
        """


class FileSample(msgspec.Struct, frozen=True, kw_only=True):
    """The format settings and the records of a sample file. ``layout``: the layout of the table; None if it is no table."""

    settings: FormatSettings
    records: SampleRecords
    layout: TableLayout | None = None

    @property
    def format(self) -> str:
        """The name of the format; empty if the suffix of the file selects the format."""
        return str(self.settings.get("type", ""))

    @property
    def is_document(self) -> bool:
        """True if the file is one record, such as an INI."""
        is_whole = self.settings.keys() in (set(), {"type", "encoding"})
        return self.layout is None and is_whole and self.records.profile.records == 1
