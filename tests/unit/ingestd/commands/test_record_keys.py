"""The key that is proposed for the records of a sample: it never repeats, and is clear or has a doubt."""

from __future__ import annotations

import polars as pl
import pytest

from ingestd.commands.initial_configuration.record_keys import propose_key, repeated_records
from ingestd.core.column_profile import ColumnProfile


def proposed(text: str, *, primary: tuple[str, ...] = (), kind: str = "") -> tuple[tuple[str, ...], str]:
    names, *rows = [line.split(",") for line in text.split()]
    records = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    profile = ColumnProfile()
    profile.add(records)
    contract = profile.contract()
    measured = {name for name in names if contract[name].type == "decimal"}
    found = propose_key(records, contract, measured=measured, primary=primary, kind=kind)
    assert not found.columns or not repeated_records(records, found.columns)
    return found.columns, found.doubt


@pytest.mark.parametrize(
    ("text", "key", "doubt"),
    [
        ("part,mass A,1.5 B,2", ("part",), ""),
        ("state,part_number A,1 B,2", ("part_number",), ""),
        ("state,partNumber A,1 B,2", ("partNumber",), ""),
        ("day,mass 2026-01-01,1.5 2026-01-02,2", ("day",), ""),
        ("bench,mass,place n,1.5,x n,2,y", ("place",), "its name does not say that it names a record"),
        ("part,mass A,1.5 ,2 B,3", ("part",), "1 record without 'part' would be rejected."),
        (
            "part,rev,mass A,1,1.5 A,2,2 B,1,1.5",
            ("part", "rev"),
            "No column names a record alone; 'part' and 'rev' together do.",
        ),
        ("bench,mass n,1.5 n,2", ("mass",), "Only the numbers of 'mass' do not repeat."),
        ("bench,mass n,1.5 n,1.5", (), "has repeated or empty values"),
        ("col}umn,id A,1 B,2", ("id",), ""),
    ],
)
def test_the_key_is_clear_or_has_a_doubt(text: str, key: tuple[str, ...], doubt: str) -> None:
    found, sentence = proposed(text)
    assert found == key
    assert (doubt in sentence) if doubt else not sentence


def test_a_primary_key_and_the_fields_of_a_format_come_first() -> None:
    text = "id,revision,number 1,A,P 2,B,P"
    assert proposed(text, primary=("number", "revision")) == (("number", "revision"), "")
    cases = "suite,classname,name s,a,t s,a,u r,a,t"
    assert proposed(cases, kind="junit") == (("suite", "classname", "name"), "")


def test_lines_with_equal_times_differ_by_their_messages() -> None:
    lines = "time,level,message 8:00,INFO,a 8:00,WARN,b 8:01,INFO,a"
    assert proposed(lines, kind="text") == (("time", "message"), "")
    assert proposed(lines.replace("8:00,WARN", "8:02,WARN"), kind="text") == (("time",), "")
