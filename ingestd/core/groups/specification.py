"""The specification of a group stage: its settings, as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Function: TypeAlias = Literal["first", "last", "min", "max", "mean", "sum", "count"]
Comparison: TypeAlias = Literal["number", "date", "instant", "text"]


class AggregateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a group.

    ``field``: the field of the records; None counts the records. ``order``: for ``first`` and ``last``, the field that orders
    the records; None: the order of the partition. ``compared``: how ``min``, ``max`` and ``order`` compare. ``decimals``: the
    number of decimals of a mean; None: see `mean_text`.
    """

    function: Function
    field: str | None
    order: str | None = None
    compared: Comparison = "number"
    decimals: int | None = None

    @property
    def compares(self) -> str | None:
        """The field with the compared values; None if the function compares no values."""
        return self.field if self.function in {"min", "max"} else self.order


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Records with the same texts in ``by`` are a group; ``take`` has the group's other fields by name.

    ``where``: only records for which this expression is true. ``let``: named expressions over the fields of one record.
    ``optional``: names of fields that may be absent in all records of a reading.
    """

    by: tuple[str, ...]
    take: tuple[tuple[str, AggregateSpec], ...]
    where: str | None = None
    let: tuple[tuple[str, str], ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a group, in their order."""
        return (*self.by, *(name for name, _ in self.take))
