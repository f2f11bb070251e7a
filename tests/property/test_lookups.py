"""Lookups give what a dictionary of plain Python gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec, LookupSpec, Mapping, TableSource
from ingestd.intake.lookup_files import parse_table

SOURCE = TableSource(file="t.csv", key="k", value="v", delimiter=";")
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
keys = st.sampled_from(["", "1", "01", "a", "A", "ä"]) | texts
missing = st.sampled_from(["reject", "none"])


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@given(table=st.dictionaries(keys, texts, max_size=6), found=st.lists(keys | st.none(), min_size=1), missing=missing)
def test_a_lookup_is_a_dictionary(
    table: dict[str, str], found: list[str | None], missing: Literal["reject", "none"]
) -> None:
    lookup = LookupSpec(table=SOURCE, by="part", missing=missing)
    mapping = Mapping([EntrySpec(key="k{file.n}", value="{x}!", lookup=(("x", lookup),))], {SOURCE: table})
    records = pl.DataFrame({"part": pl.Series(found, dtype=pl.String)})
    positions = pl.Series(range(len(found)), dtype=pl.Int64)
    facts = {"file.n": "1"}
    mapped = mapping.apply(records, positions, mapping.row_hashes(records, facts), facts)
    known = [(at, table[part]) for at, part in enumerate(found) if part is not None and part in table]
    assert mapped.entries.select("position", "value").rows() == [(at, f"{value}!") for at, value in known]
    unknown = [at for at, part in enumerate(found) if part is not None and part not in table]
    assert [reject.position for reject, _ in mapped.rejects] == (unknown if missing == "reject" else [])


@given(table=st.dictionaries(keys, texts), other=texts)
def test_a_file_is_read_as_it_was_written(table: dict[str, str], other: str) -> None:
    rows = [f"{quoted(value)};{quoted(other)};{quoted(key)}\r\n" for key, value in table.items()]
    content = "v;other;k\r\n" + "".join(rows)
    assert parse_table(content.encode(), SOURCE, Path("t.csv")) == table


@given(table=st.dictionaries(keys, texts), other=st.dictionaries(keys, texts))
def test_the_digest_is_that_of_the_content(table: dict[str, str], other: dict[str, str]) -> None:
    spec = EntrySpec(key="{x}", value="v", lookup=(("x", LookupSpec(table=SOURCE, by="part")),))
    first, second = Mapping([spec], {SOURCE: table}), Mapping([spec]).with_tables({SOURCE: other})
    assert (first.digest == second.digest) == (table == other)
    assert Mapping([spec], {SOURCE: dict(reversed(table.items()))}).digest == first.digest
