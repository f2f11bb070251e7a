"""The contract of a source's columns: their names, types and filling. A pure rule.

Types describe the text of a value: ``integer`` and ``decimal`` (without leading zeros, which belong to identifiers), ``date``
(ISO 8601, with or without a time), and ``text``. An empty or missing value has every type.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, TypeAlias

import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch, Reject

ColumnType: TypeAlias = Literal["integer", "decimal", "date", "text"]
Reaction: TypeAlias = Literal["accept", "reject"]

_WHOLE = r"(0|[1-9][0-9]*)"
PATTERNS: Mapping[ColumnType, str] = {
    "integer": rf"^[+-]?{_WHOLE}$",
    "decimal": rf"^[+-]?({_WHOLE}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$",
}
"""The form of the values of a type, from the narrowest type on; ``text`` has every form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnContract:
    """``filled``: every record has a value that is not empty. ``values``: the permitted ones; empty: any."""

    type: ColumnType = "text"
    filled: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The columns of a source, and what happens with ``new``, ``missing`` and ``retyped`` ones."""

    columns: Mapping[str, ColumnContract]
    new: Reaction = "accept"
    missing: Reaction = "reject"
    retyped: Reaction = "reject"

    def digest_with(self, mapping: str) -> str:
        """Return the digest of a mapping under this contract, so that a changed contract has everything read again."""
        text = json.dumps([mapping, asdict(self)], sort_keys=True, default=dict)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class ContractCheck:
    """Checks the batches of one reading. ``notices``: what was accepted although the contract differs."""

    contract: Contract
    notices: dict[str, str] = field(default_factory=dict)

    def apply(self, batch: Batch) -> Batch:
        """Return the batch; rows that break the contract are among its rejects.

        Raises:
            SourceBroken: the contract rejects a reading with such columns.
        """
        self._check_names(batch)
        bad: dict[int, tuple[str, str]] = {}
        for name, column in self.contract.columns.items():
            if name in batch.records.columns:
                self._check_values(batch, name, column, bad)
            elif column.filled and not batch.header:
                empty = pl.repeat(value=True, n=batch.records.height, dtype=pl.Boolean, eager=True)
                self._note(batch, empty, name, self.contract.missing, "is empty; the contract needs a value", bad=bad)
        if not bad:
            return batch
        rejects = tuple(
            Reject(
                position=position if isinstance(position := batch.positions[order], str) else int(position),
                reason=reason,
                field=name,
                record=batch.records.row(order, named=True),
            )
            for order, (name, reason) in sorted(bad.items())
        )
        keep = ~pl.int_range(batch.records.height, eager=True).is_in(list(bad))
        return replace(
            batch,
            records=batch.records.filter(keep),
            positions=batch.positions.filter(keep),
            rejects=(*batch.rejects, *rejects),
        )

    def _check_names(self, batch: Batch) -> None:
        columns = batch.records.columns
        new = [name for name in columns if name not in self.contract.columns]
        if new:
            self._react(self.contract.new, "new", f"The contract has no {_listed(new)}.")
        missing = [name for name in self.contract.columns if name not in columns] if batch.header else []
        if missing:
            self._react(
                self.contract.missing, "missing", f"The source has no {_listed(missing)}, which the contract has."
            )

    def _react(self, reaction: Reaction, setting: str, sentence: str) -> None:
        if reaction == "reject":
            raise SourceBroken(
                f"{sentence} Correct the source, or run 'ingestd infer' and change the contract (contract.{setting}: reject)."
            )
        self.notices.setdefault(sentence, sentence)

    def _check_values(self, batch: Batch, name: str, column: ColumnContract, bad: dict[int, tuple[str, str]]) -> None:
        values = batch.records[name]
        is_empty = values.is_null() | (values == "").fill_null(value=True)
        if column.filled:
            self._note(batch, is_empty, name, self.contract.missing, "is empty; the contract needs a value", bad=bad)
        if column.type != "text":
            wrong = ~is_empty & ~values.str.contains(PATTERNS[column.type]).fill_null(value=True)
            self._note(batch, wrong, name, self.contract.retyped, f"the contract needs the type {column.type}", bad=bad)
        if column.values:
            wrong = ~is_empty & ~values.is_in(list(column.values)).fill_null(value=True)
            permitted = ", ".join(column.values)
            self._note(batch, wrong, name, self.contract.retyped, f"the contract permits {permitted}", bad=bad)

    def _note(
        self,
        batch: Batch,
        wrong: pl.Series,
        name: str,
        reaction: Reaction,
        rule: str,
        *,
        bad: dict[int, tuple[str, str]],
    ) -> None:
        """Reject the rows where ``wrong`` is true, or note the first of them."""
        orders = wrong.arg_true().to_list()
        if not orders:
            return
        if reaction == "accept":
            first = orders[0]
            self.notices.setdefault(
                f"{name}: {rule}", f"{batch.positions[first]}: {_described(batch.records, name, first, rule)}."
            )
            return
        for order in orders:
            bad.setdefault(order, (name, f"{_described(batch.records, name, order, rule)}."))


def _described(records: pl.DataFrame, name: str, order: int, rule: str) -> str:
    value = records[name][order] if name in records.columns else None
    return f"'{name}' is '{value}'; {rule}" if value else f"'{name}' {rule}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"column{'' if len(names) == 1 else 's'} {shown}{more}"
