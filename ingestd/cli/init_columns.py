"""The columns of a sample for `ingestd init`: the list of columns, and the choice of the key and the values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click
import msgspec

from ingestd.cli.dialogue import Dialogue
from ingestd.commands.initial_configuration.record_keys import (
    DOCUMENT,
    FILE,
    is_possible_key,
    propose_key,
    repeated_records,
)
from ingestd.commands.initial_configuration.sample import SampleRecords
from ingestd.commands.initial_configuration.text import (
    NUMERIC,
    InitialEntries,
    entries_of,
    suggested_values,
)
from ingestd.core.column_profile import UnclearNumbers
from ingestd.core.phrases import counted
from ingestd.process.terminal_text import echo, safe_line

_COLUMNS_SHOWN = 50


class ChosenKey(msgspec.Struct, frozen=True, kw_only=True):
    """The columns that identify a record. ``repeated``: the number of records with the key of an earlier record."""

    columns: tuple[str, ...]
    repeated: int = 0


def list_columns(records: SampleRecords) -> None:
    """Print the columns with their types."""
    contract, unclear = records.profile.contract(), _unclear(records)
    commas, thousands = records.profile.decimal_commas(), records.profile.thousands_commas()
    notations = {
        **dict.fromkeys(unclear, "number"),
        **dict.fromkeys(commas, "number with a decimal comma"),
        **dict.fromkeys(thousands, "number with commas between thousands"),
    }
    echo(f"{counted(records.profile.records, 'record')}. Columns:", err=True)
    for name, column in list(contract.items())[:_COLUMNS_SHOWN]:
        echo(
            safe_line(f"  {name}: {notations.get(name, column.type)}{', always filled' if column.filled else ''}"),
            err=True,
        )
    if len(contract) > _COLUMNS_SHOWN:
        echo(f"  and {counted(len(contract) - _COLUMNS_SHOWN, 'more column')}", err=True)


def choose_key(records: SampleRecords, given: Sequence[str], ask: Dialogue, *, kind: str) -> ChosenKey:
    """Return the key: the given columns, else the proposed columns. A person decides about a proposal with a doubt.

    Raises:
        click.UsageError: a column is unknown or can't be in a key, or the key is not clear and no person can be asked.
    """
    contract = records.profile.contract()
    columns = tuple(given)
    if not columns and kind == DOCUMENT:
        return ChosenKey(columns=(FILE,))
    if not columns:
        measured = {name for name in _numeric(records) if contract[name].type != "integer"}
        proposal = propose_key(records.first, contract, measured=measured, primary=records.key, kind=kind)
        columns = proposal.columns
        if proposal.doubt:
            proposed = " + ".join(columns)
            chosen = ask.decide("--key", proposal.doubt, proposed)
            if chosen != proposed:  # a name may contain the separator
                columns = (chosen,) if chosen in contract else tuple(part.strip() for part in chosen.split(" + "))
    for name in columns:
        _require(name in contract or name.startswith("file."), name, contract)
        if not is_possible_key(name):
            raise click.UsageError(
                f"The column '{name}' can't be named in a template. Rename it in the source, or choose another column."
            )
    repeated = repeated_records(records.first, columns)
    if repeated:
        verb = "repeats" if repeated == 1 else "repeat"
        echo(
            f"{counted(repeated, 'record')} of the sample {verb} the key of an earlier one. Of records with equal keys, only"
            " the last is delivered. Name more columns with --key.",
            err=True,
        )
    echo(f"Key of a record: {', '.join(columns)}.", err=True)
    return ChosenKey(columns=columns, repeated=repeated)


def choose_entries(
    records: SampleRecords, key: Sequence[str], given: Sequence[str], ask: Dialogue, *, kind: str
) -> tuple[InitialEntries, ...]:
    """Return the entries of the columns with values: the given columns, else the proposal, which a person may change.

    Raises:
        click.UsageError: a column is unknown, or no column is left or chosen.
    """
    profile, contract = records.profile, records.profile.contract()
    for name in given:
        _require(name in contract, name, contract)
    columns = tuple(given)
    if not columns:
        columns = suggested_values(contract, key, _numeric(records), kind=kind)
        if not columns:
            raise click.UsageError(f"The sample has no column with values besides {', '.join(key)}.")
        if ask.interactive:
            columns = tuple(
                name
                for name in contract
                if name not in key and click.confirm(f"Send '{name}'?", default=name in columns, err=True)
            )
        if not columns:
            raise click.UsageError("No column was chosen, so there is nothing to send.")
    unclear = _unclear(records)
    named = [name for name in unclear if name in columns]
    decimal = "."
    if named:
        doubt = f"The numbers of {', '.join(named)} do not show whether a comma or a point separates their decimals."
        possible = {mark for name in named if (mark := unclear[name].decimal) is not None}
        proposal = possible.pop() if len(possible) == 1 else "," if _has_semicolons(records) else "."
        decimal = ask.decide("--decimal", doubt, proposal, choices=(",", "."))
    return entries_of(profile, columns, unclear, decimal=decimal)


def _require(is_known: bool, name: str, contract: Iterable[str]) -> None:
    if not is_known:
        raise click.UsageError(f"The sample has no column '{name}'. Its columns are: {', '.join(contract)}.")


def _has_semicolons(records: SampleRecords) -> bool:
    """Return True if semicolons separate the columns. Spreadsheets write such files if numbers have a decimal comma."""
    return records.facts.get("file.delimiter") == "semicolon"


def _unclear(records: SampleRecords) -> Mapping[str, UnclearNumbers]:
    return records.profile.unclear_numbers(points=_has_semicolons(records))


def _numeric(records: SampleRecords) -> frozenset[str]:
    """Return the columns of numbers, in every notation."""
    profile = records.profile
    types = (name for name, column in profile.contract().items() if column.type in NUMERIC)
    return frozenset((*types, *profile.decimal_commas(), *profile.thousands_commas(), *_unclear(records)))
