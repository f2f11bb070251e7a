"""The profile of a sample's columns, from which `ingestd init` suggests entries. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import polars as pl

from ingestd.core.contract import PATTERNS, ColumnContract, ColumnType

_COMMA_FORM = r"^[+-]?(0|[1-9][0-9]{0,2}(\.[0-9]{3})+|[1-9][0-9]*)(,[0-9]+)?([eE][+-]?[0-9]+)?$"
_COMMA_PROOF = r"^[+-]?0,|,([0-9]{1,2}|[0-9]{4,})([eE]|$)|\..*,"
"""A comma that can't be a separator of thousands: 1,5 and 0,125, but not 1,250."""
_POINT_FORM = r"^[+-]?(0|[1-9][0-9]{0,2}(,[0-9]{3})+|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_TWO_MARKS = r"[.,].*[.,]"

NO_VALUE = frozenset({"-", "--", "?", "n/a", "#n/a", "na", "nan", "null", "none", "k.a."})
"""Texts that people write into a column of numbers instead of a number, in lower case."""


class UnclearNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """A column in which a mark may separate decimals or thousands. ``commas``, ``points``: the marks in its numbers.

    ``decimal``: the decimal mark with which each number can be read; None if both marks are possible.
    """

    commas: bool
    points: bool
    decimal: Literal[".", ","] | None = None


class _Column(msgspec.Struct):
    """``filled``: the number of values, without the ``gaps``: texts of `NO_VALUE`, counted by ``in_gaps``."""

    types: list[ColumnType] = msgspec.field(default_factory=lambda: list(PATTERNS))
    filled: int = 0
    gaps: set[str] = msgspec.field(default_factory=set)
    in_gaps: int = 0
    has_comma_form: bool = True
    has_point_form: bool = True
    has_comma: bool = False
    has_point: bool = False
    has_two_marks: bool = False
    has_proof: bool = False

    @property
    def present(self) -> int:
        """The number of values and gaps."""
        return self.filled + self.in_gaps

    def add(self, values: pl.Series) -> None:
        present = values.filter((values != "").fill_null(value=False))
        is_gap = present.str.to_lowercase().is_in(NO_VALUE)
        gaps, present = present.filter(is_gap), present.filter(~is_gap)
        self.gaps.update(gaps.unique())
        self.in_gaps += gaps.len()
        self.filled += present.len()
        self.types = [one for one in self.types if present.str.contains(PATTERNS[one]).all()]
        self.has_comma |= bool(present.str.contains(",", literal=True).any())
        self.has_point |= bool(present.str.contains(".", literal=True).any())
        self.has_two_marks |= bool(present.str.contains(_TWO_MARKS).any())
        self.has_point_form = self.has_point_form and bool(present.str.contains(_POINT_FORM).all())
        if self.has_comma_form:
            self.has_comma_form = bool(present.str.contains(_COMMA_FORM).all())
            self.has_proof |= bool(present.str.contains(_COMMA_PROOF).any())

    @property
    def is_mixed(self) -> bool:
        """Some numbers have only a comma, and others only a point, so each mark may separate decimals: 1.250 and 2,75."""
        return self.has_comma and self.has_point and not self.has_two_marks

    @property
    def only_decimal(self) -> Literal[".", ","] | None:
        if self.has_comma_form == self.has_point_form:
            return None
        return "," if self.has_comma_form else "."


class ColumnProfile:
    """Collects the columns of a reading; its memory does not depend on the number of records."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self.records = 0

    def add(self, records: pl.DataFrame) -> None:
        """Add the records of a batch."""
        self.records += records.height
        for name in records.columns:
            self._columns.setdefault(name, _Column()).add(records[name])

    def contract(self) -> Mapping[str, ColumnContract]:
        """Return the contract of each column, in the order in which the columns were found."""
        return {name: self._contract_of(column) for name, column in self._columns.items()}

    def gaps(self, name: str) -> list[str]:
        """Return the texts of a column of numbers that mean "no number"; the empty text first."""
        column = self._columns[name]
        is_empty = column.present < self.records
        return [*([""] if is_empty else []), *sorted(column.gaps)]

    def decimal_commas(self) -> Mapping[str, bool]:
        """Return the columns of numbers with a decimal comma, and whether points separate their thousands.

        If one column proves that the source has decimal commas, and no column has a decimal point, all columns of numbers are
        returned.
        """
        numbers = {
            name: column
            for name, column in self._columns.items()
            if column.filled and column.has_comma_form and not column.is_mixed
        }
        is_proven = any(column.has_proof for column in numbers.values())
        return {
            name: column.has_point
            for name, column in numbers.items()
            if column.has_proof or (is_proven and not self._has_points)
        }

    def thousands_commas(self) -> frozenset[str]:
        """Return the columns of numbers with commas between thousands and a decimal point, such as 1,250.5."""
        return frozenset(
            name
            for name, column in self._columns.items()
            if column.filled and column.has_comma and not column.is_mixed
            if column.has_point_form and not column.has_comma_form
        )

    def unclear_numbers(self, *, points: bool) -> Mapping[str, UnclearNumbers]:
        """Return the columns, except `decimal_commas`, with a mark that may separate decimals or thousands.

        ``points``: points are ambiguous, too, unless another number of the source proves that they separate decimals.
        """
        commas, may_group = self.decimal_commas(), points and not self._has_points
        return {
            name: UnclearNumbers(commas=column.has_comma, points=column.has_point, decimal=column.only_decimal)
            for name, column in self._columns.items()
            if column.filled and name not in commas
            if (column.is_mixed and column.has_point_form)
            or (column.has_comma_form and (column.has_comma or (column.has_point and may_group)))
        }

    @property
    def _has_points(self) -> bool:
        return bool(self.thousands_commas()) or any(
            column.filled and column.types[:1] == ["decimal"] and not column.has_comma_form
            for column in self._columns.values()
        )

    def _contract_of(self, column: _Column) -> ColumnContract:
        if not column.present:
            return ColumnContract()
        if not column.filled or not (column.types or column.has_comma_form or column.has_point_form):
            return ColumnContract(filled=column.present == self.records)
        return ColumnContract(type=column.types[0] if column.types else "text", filled=column.filled == self.records)
