"""Compiled expressions, their kinds and faults, and the errors of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.mapping import number

if TYPE_CHECKING:
    from sqlglot import exp

Kind: TypeAlias = Literal["text", "number", "boolean", "null"]


class ExpressionError(ValueError):
    """An expression that can't be compiled; ``position`` is the 0-based offset of the mistake in its text, if it is known."""

    def __init__(self, sentence: str, position: int | None = None) -> None:
        self.position = position
        super().__init__(sentence)


class RecordFault(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to reject the records for which ``bad`` is true. The sentence is followed by the values of ``columns``."""

    bad: pl.Expr
    columns: tuple[str, ...]
    sentence: str

    def reason(self, record: Mapping[str, object]) -> str:
        """Return the sentence for one record."""
        values = [f"'{name}' is '{record[name]}'" for name in self.columns if record.get(name) is not None]
        return f"{self.sentence} Here {' and '.join(values)}." if values else self.sentence


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled expression.

    ``columns``: the used fields. ``raw``: it is the unchanged text of a field. ``constant``: the value of a literal.
    """

    expr: pl.Expr
    kind: Kind
    columns: tuple[str, ...] = ()
    faults: tuple[RecordFault, ...] = ()
    raw: bool = False
    constant: str | None = None
    inexact: tuple[pl.Expr, RecordFault] | None = None
    """For a product or quotient: whether it is exact, and the fault of the records with an inexact result."""

    def text(self) -> pl.Expr:
        """Return the values as text; null if there is no value."""
        if self.constant is not None:
            return pl.lit(self.constant)
        if self.kind == "number":
            return number.number_text(self.expr)
        return self.expr.cast(pl.String)


def any_fault(faults: Sequence[RecordFault]) -> pl.Expr:
    """Return whether a record has one of the faults."""
    return pl.any_horizontal([fault.bad.fill_null(value=False) for fault in faults]) if faults else pl.lit(value=False)


def guarded(found: Typed, condition: pl.Expr) -> Typed:
    """Return ``found`` with its faults limited to records for which ``condition`` is true."""
    return replace(found, faults=tuple(replace(fault, bad=condition & fault.bad) for fault in found.faults))


def combined(*found: Typed) -> Typed:
    """Return the columns and faults of several expressions; the caller replaces the other members."""
    columns = tuple(dict.fromkeys(name for item in found for name in item.columns))
    faults: list[RecordFault] = []
    for item in found:
        faults += [fault for fault in item.faults if not any(fault is known for known in faults)]
    return Typed(expr=found[0].expr, kind=found[0].kind, columns=columns, faults=tuple(faults))


def as_text(found: Typed, text: pl.Expr) -> Typed:
    """Return a text that is computed from ``found``, with the faults of ``found``."""
    return Typed(expr=text, kind="text", columns=found.columns, faults=found.faults)


def as_condition(found: Typed, condition: pl.Expr) -> Typed:
    """Return a condition about ``found``, with the faults of ``found``."""
    return Typed(expr=condition, kind="boolean", columns=found.columns, faults=found.faults)


def one_kind(values: Sequence[Typed]) -> tuple[Kind, list[pl.Expr]]:
    """Return the common kind of alternatives (text if their kinds differ), and each alternative converted to this kind."""
    kinds = {value.kind for value in values} - {"null"}
    if len(kinds) != 1 or kinds == {"text"}:
        return "text", [value.text() for value in values]
    (kind,) = kinds
    dtype = number.number_type() if kind == "number" else pl.Boolean
    return kind, [value.expr.cast(dtype) if value.kind == "null" else value.expr for value in values]


def position_of(node: exp.Expr) -> int | None:
    """Return the offset of a node in the text of its expression; None if the parser did not record it."""
    starts = [int(one.meta["start"]) for one in node.walk() if "start" in one.meta]
    return min(starts) if starts else None


def shown(node: exp.Expr, quote: str = "'") -> str:
    """Return the node as SQL for a sentence."""
    text = node.sql()
    return f"{quote}{text if len(text) <= 60 else text[:59] + '…'}{quote}"
