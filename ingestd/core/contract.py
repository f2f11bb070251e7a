"""The contract of a source's columns: names, types, and which columns need a value. Performs no I/O.

Types describe the text of a value: ``integer``, ``decimal``, ``date`` (ISO 8601, with or without a time), and ``text``. A
number with leading zeros, such as ``007``, is an identifier and therefore ``text``. An empty or missing value has every type.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.column import listed
from ingestd.core.phrases import shortened
from ingestd.core.record import Batch, location_text, reject_rows

ColumnType: TypeAlias = Literal["integer", "decimal", "date", "text"]
Reaction: TypeAlias = Literal["accept", "hold", "reject"]

_WHOLE = r"(0|[1-9][0-9]*)"
PATTERNS: Mapping[ColumnType, str] = {
    "integer": rf"^[+-]?{_WHOLE}$",
    "decimal": rf"^[+-]?({_WHOLE}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$",
}
"""The regular expression of each type, the narrowest type first. ``text`` has none: it permits every value."""


class ColumnContract(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for one column. ``filled``: each record has a nonempty value. ``values``: the permitted values; empty: all."""

    type: ColumnType = "text"
    filled: bool = False
    values: tuple[str, ...] = ()


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a source, and the reactions to ``new``, ``missing`` and ``retyped`` columns."""

    columns: Mapping[str, ColumnContract]
    new: Reaction = "accept"
    missing: Reaction = "reject"
    retyped: Reaction = "reject"

    @property
    def can_hold(self) -> bool:
        """Return True if a run can be held because of the contract."""
        return "hold" in {self.new, self.missing, self.retyped}

    def digest_with(self, mapping: str) -> str:
        """Return a digest of the mapping's digest and this contract. If the result changes, the whole source is read again."""
        text = json.dumps([mapping, msgspec.to_builtins(self, enc_hook=dict)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class ContractCheck(msgspec.Struct):
    """Checks the batches of one reading.

    ``notices``: a sentence for each difference from the contract that was not rejected. ``breaches``: the notices that hold the
    run.
    """

    contract: Contract
    notices: dict[str, str] = msgspec.field(default_factory=dict)
    breaches: dict[str, str] = msgspec.field(default_factory=dict)

    def hold_reasons(self) -> tuple[str, ...]:
        """Return one sentence for each breach that holds the run, then advice; empty if the run is not held."""
        return (*self.breaches.values(), _RENEW) if self.breaches else ()

    def apply(self, batch: Batch) -> Batch:
        """Return the batch with the rows that break the contract moved to its rejects.

        Raises:
            SourceBroken: columns are new or missing, and the contract rejects a reading with this difference.
        """
        self._check_names(batch)
        bad: dict[int, tuple[str, str]] = {}
        for name, column in self.contract.columns.items():
            if name in batch.records.columns:
                self._check_values(batch, name, column, bad)
            elif column.filled and not batch.header:
                empty = pl.repeat(value=True, n=batch.records.height, dtype=pl.Boolean, eager=True)
                self._note(batch, empty, name, _FILLED, bad)
        return reject_rows(batch, bad) if bad else batch

    def _check_names(self, batch: Batch) -> None:
        columns = batch.records.columns
        new = [name for name in columns if name not in self.contract.columns]
        if new:
            self._react("new", new, f"The contract has no {_listed(new)}.")
        missing = [name for name in self.contract.columns if name not in columns] if batch.header else []
        if missing:
            self._react("missing", missing, f"The source has no {_listed(missing)}, which the contract has.")

    def _react(self, setting: Literal["new", "missing"], names: Sequence[str], sentence: str) -> None:
        reaction: Reaction = getattr(self.contract, setting)
        if reaction == "reject":
            raise SourceBroken(
                f"{sentence} Correct the source, or change the contract of the pipeline (contract.{setting}: reject)."
            )
        if reaction == "hold":
            verb = "is" if len(names) == 1 else "are"
            sentence = f"C{_listed(names)[1:]} {verb} {setting}."
        self._keep(sentence, sentence, reaction)

    def _keep(self, name: str, sentence: str, reaction: Reaction) -> None:
        self.notices.setdefault(name, sentence)
        if reaction == "hold":
            self.breaches.setdefault(name, sentence)

    def _check_values(self, batch: Batch, name: str, column: ColumnContract, bad: dict[int, tuple[str, str]]) -> None:
        values = batch.records[name]
        is_empty = values.is_null() | (values == "").fill_null(value=True)
        if column.filled:
            self._note(batch, is_empty, name, _FILLED, bad)
        if column.type != "text":
            wrong = ~is_empty & ~values.str.contains(PATTERNS[column.type]).fill_null(value=True)
            rule = _Rule(
                setting="retyped",
                sentence=f"the contract needs the type {column.type}",
                breach=lambda row, value: f"is {_type_of(value)} now: {row} has '{shortened(value)}'",
            )
            self._note(batch, wrong, name, rule, bad)
        if column.values:
            wrong = ~is_empty & ~values.is_in(list(column.values)).fill_null(value=True)
            permitted = f"the contract permits {', '.join(column.values)}"
            rule = _Rule(
                setting="retyped",
                sentence=permitted,
                breach=lambda row, value: f"has another value: {row} has '{shortened(value)}'; {permitted}",
            )
            self._note(batch, wrong, name, rule, bad)

    def _note(self, batch: Batch, wrong: pl.Series, name: str, rule: _Rule, bad: dict[int, tuple[str, str]]) -> None:
        """Reject the rows where ``wrong`` is true, or keep a notice about the first of these rows."""
        orders = wrong.arg_true()
        if not orders.len():
            return
        reaction: Reaction = getattr(self.contract, rule.setting)
        if reaction == "reject":
            for order in orders:
                bad.setdefault(order, (name, f"{_described(batch.records, name, order, rule.sentence)}."))
            return
        first = orders[0]
        position = batch.positions[first]
        sentence = f"{location_text(position)}: {_described(batch.records, name, first, rule.sentence)}."
        if reaction == "hold":
            value = batch.records[name][first] if name in batch.records.columns else None
            sentence = f"Column '{name}' {rule.breach(location_text(position), value or '')}."
        self._keep(f"{name}: {rule.sentence}", sentence, reaction)


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for values. ``breach`` gets the row and the value, and returns the sentence after "Column 'x'"."""

    setting: Literal["missing", "retyped"]
    sentence: str
    breach: Callable[[str, str], str]


_FILLED = _Rule(
    setting="missing",
    sentence="is empty; the contract needs a value",
    breach=lambda row, _: f"is empty in {row}",
)

_RENEW = "Until you change the contract to permit this, a later reading with different content is held, too."


def _type_of(value: str) -> ColumnType:
    """Return the narrowest type of a value."""
    return next((name for name, pattern in PATTERNS.items() if re.search(pattern, value)), "text")


def _described(records: pl.DataFrame, name: str, order: int, rule: str) -> str:
    value = records[name][order] if name in records.columns else None
    return f"'{name}' is '{shortened(value)}'; {rule}" if value else f"'{name}' {rule}"


def _listed(names: Sequence[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {listed(names)}"
