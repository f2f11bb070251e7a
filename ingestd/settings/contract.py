"""The setting ``contract`` of a pipeline: the columns of its source, and the reaction to other columns."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ingestd.core.contract import ColumnContract, ColumnType, Contract, Reaction
from ingestd.settings.part import SettingsPart


class ColumnSettings(SettingsPart):
    """The contract of one column."""

    type: ColumnType = Field(
        default="text", description="integer, decimal, date (ISO 8601, with or without a time), or text."
    )
    filled: bool = Field(default=False, description="Whether every record has a value in the column.")
    values: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list, description="The permitted values. Default: any."
    )


class ContractSettings(SettingsPart):
    """The columns of a source, and the reaction to other columns."""

    columns: dict[str, ColumnSettings] = Field(min_length=1, description="The columns by name.")
    new: Reaction = Field(
        default="accept",
        description="The reaction to a column that the contract does not have. accept: continue, with a notice in "
        "`ingestd status`; hold: hold the run until `ingestd approve` or `ingestd discard`; reject: reject the file or table.",
    )
    missing: Reaction = Field(
        default="reject",
        description="The reaction to a missing column of the contract: accept, hold or reject the file or table. Also "
        "the reaction to an empty value in a filled column: accept the value, hold the run, or reject the record.",
    )
    retyped: Reaction = Field(
        default="reject",
        description="The reaction to a value of another type: accept the value, hold the run, or reject the record.",
    )

    def contract(self) -> Contract:
        """Return the contract that the intake checks."""
        columns = {
            name: ColumnContract(type=one.type, filled=one.filled, values=tuple(one.values))
            for name, one in self.columns.items()
        }
        return Contract(columns=columns, new=self.new, missing=self.missing, retyped=self.retyped)
