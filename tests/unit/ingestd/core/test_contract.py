"""A reading is checked against the contract of its columns, and the profile of records has their types."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from ingestd.core.column_profile import ColumnProfile
from ingestd.core.contract import ColumnContract, Contract, ContractCheck
from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch
from ingestd.sdk import pack

COLUMNS = {
    "part": ColumnContract(filled=True),
    "mass": ColumnContract(type="decimal"),
    "state": ColumnContract(values=("open", "done")),
}
GOOD = {"part": "00417", "mass": "0.30", "state": "open"}


def batch(*rows: Mapping[str, str | None]) -> Batch:
    return pack(rows, cursor={}, header=True, last=True)


def test_a_reading_that_fulfils_the_contract_is_unchanged() -> None:
    given = batch(GOOD, {**GOOD, "mass": "", "state": None})
    check = ContractCheck(Contract(columns=COLUMNS))
    assert check.apply(given) is given
    assert check.notices == {}


def test_rows_of_the_wrong_type_are_rejected_alone_with_column_and_value() -> None:
    given = batch(GOOD, {**GOOD, "mass": "1,5"}, {**GOOD, "state": "closed"}, {**GOOD, "part": ""}, GOOD)
    checked = ContractCheck(Contract(columns=COLUMNS)).apply(given)
    assert checked.positions.to_list() == [1, 5]
    assert [(one.position, one.field, one.reason) for one in checked.rejects] == [
        (2, "mass", "'mass' is '1,5'; the contract needs the type decimal."),
        (3, "state", "'state' is 'closed'; the contract permits open, done."),
        (4, "part", "'part' is empty; the contract needs a value."),
    ]
    assert checked.rejects[0].record == {**GOOD, "mass": "1,5"}


def test_accepted_differences_are_notices_with_the_first_location() -> None:
    accepting = Contract(columns=COLUMNS, missing="accept", retyped="accept")
    check = ContractCheck(accepting)
    given = batch({"part": "a", "mass": "x", "colour": "red"}, {"part": "b", "mass": "y", "colour": "red"})
    assert check.apply(given) is given
    assert list(check.notices.values()) == [
        "The contract has no column 'colour'.",
        "The source has no column 'state', which the contract has.",
        "row 1: 'mass' is 'x'; the contract needs the type decimal.",
    ]


def test_held_differences_are_reasons_with_the_first_row_and_the_type_of_its_value() -> None:
    holding = Contract(columns=COLUMNS, new="hold", missing="hold", retyped="hold")
    check = ContractCheck(holding)
    given = batch({"part": "", "mass": "n/a", "Colour": "red"}, {"part": "b", "mass": "y", "Colour": "red"})
    assert check.apply(given) is given
    assert check.apply(batch({"part": "c", "mass": "z", "Colour": "red"})).rejects == ()
    assert check.hold_reasons() == (
        "Column 'Colour' is new.",
        "Column 'state' is missing.",
        "Column 'part' is empty in row 1.",
        "Column 'mass' is text now: row 1 has 'n/a'.",
        "Until you change the contract to permit this, a later reading with different content is held, too.",
    )
    check = ContractCheck(Contract(columns={"day": ColumnContract(type="integer")}, retyped="hold"))
    check.apply(batch({"day": "2026-01-01"}))
    assert check.hold_reasons()[0] == "Column 'day' is date now: row 1 has '2026-01-01'."
    check = ContractCheck(Contract(columns=COLUMNS, retyped="hold"))
    check.apply(batch({**GOOD, "state": "closed {x}"}))
    assert (
        check.hold_reasons()[0]
        == "Column 'state' has another value: row 1 has 'closed {x}'; the contract permits open, done."
    )


def test_a_reading_without_held_differences_has_no_reason() -> None:
    check = ContractCheck(Contract(columns=COLUMNS, new="accept", missing="hold", retyped="hold"))
    check.apply(batch({**GOOD, "colour": "red"}))
    assert (check.hold_reasons(), len(check.notices)) == ((), 1)


def test_new_and_missing_columns_reject_the_partition() -> None:
    with pytest.raises(SourceBroken, match=r"no column 'colour'.*contract.new"):
        ContractCheck(Contract(columns=COLUMNS, new="reject")).apply(batch({**GOOD, "colour": "red"}))
    with pytest.raises(SourceBroken, match=r"no columns 'part', 'state'.*contract.missing"):
        ContractCheck(Contract(columns=COLUMNS)).apply(batch({"mass": "1"}))


def test_without_a_header_a_record_lacks_the_column() -> None:
    given = pack([{"mass": "1"}], cursor={}, last=True)
    checked = ContractCheck(Contract(columns=COLUMNS)).apply(given)
    assert checked.records.height == 0
    assert [one.field for one in checked.rejects] == ["part"]


def test_another_contract_has_another_digest() -> None:
    first, second = Contract(columns=COLUMNS), Contract(columns=COLUMNS, retyped="accept")
    assert first.digest_with("m") == Contract(columns=dict(COLUMNS)).digest_with("m")
    assert len({first.digest_with("m"), second.digest_with("m"), first.digest_with("n")}) == 3


def inferred(*values: str | None) -> ColumnContract:
    profile = ColumnProfile()
    for value in values:  # one batch each: the result does not depend on batches
        profile.add(pl.DataFrame({"c": [value]}, schema={"c": pl.String}))
    return profile.contract()["c"]


@pytest.mark.parametrize(
    ("values", "contract"),
    [
        (("1", "-2", "0"), ColumnContract(type="integer", filled=True)),
        (("1", "2.50", "1e3", None), ColumnContract(type="decimal")),
        (("00417", "1"), ColumnContract(filled=True)),
        (("1,5", "2"), ColumnContract(filled=True)),
        (("2026-01-31", "2026-01-31T10:00:00Z", ""), ColumnContract(type="date")),
        (("open", "done"), ColumnContract(filled=True)),
        ((None, ""), ColumnContract()),
    ],
)
def test_types_come_from_the_content(values: tuple[str | None, ...], contract: ColumnContract) -> None:
    assert inferred(*values) == contract


def test_what_was_inferred_accepts_the_same_records() -> None:
    given = batch(GOOD, {**GOOD, "mass": "7"}, {**GOOD, "state": ""})
    profile = ColumnProfile()
    profile.add(given.records)
    contract = Contract(columns=profile.contract(), new="reject", missing="reject", retyped="reject")
    assert ContractCheck(contract).apply(given) is given


def test_a_column_that_appears_later_is_not_always_filled() -> None:
    profile = ColumnProfile()
    profile.add(pl.DataFrame({"a": ["1"]}))
    profile.add(pl.DataFrame({"a": ["2"], "b": ["3"]}))
    assert [one.filled for one in profile.contract().values()] == [True, False]
