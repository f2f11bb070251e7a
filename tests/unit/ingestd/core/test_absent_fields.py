"""Fields that a mapping names and no record of a reading has."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from ingestd.core.errors import SourceBroken
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.mapping import AbsentField, AbsentFields, EntrySpec, LookupSpec, Mapping, TableSource
from ingestd.core.mapping.conversion import UnitRule, ValueRules
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.core.record import Batch, Reject, Section
from ingestd.sdk import pack

Record = MappingOf[str, str | None]
MASS = EntrySpec(key="{part}.mass", value="{mass}")
FACTS = {"file.name": "run 7.csv", "file.stem": "run 7"}


def batch(*records: Record, last: bool = True, header: bool = False, facts: MappingOf[str, str] = FACTS) -> Batch:
    return pack(records, cursor={}, last=last, header=header, facts=facts)


def evaluate(mapping: Mapping | Aggregation, *batches: Batch, whole: bool = True) -> AbsentField | None:
    """Add the batches of a reading as the intake does; return what the last one lacks."""
    fields, absent = AbsentFields(mapping, whole=whole), None
    for one in batches:
        absent = fields.add(one)
        if isinstance(mapping, Mapping):
            hashes = mapping.row_hashes(one.records, one.facts)
            found = mapping.apply(one.records, one.positions, hashes, one.facts).child_fields
            absent = absent or fields.add_children(found, is_whole=True, last=one.last)
    return absent


def sentence(mapping: Mapping | Aggregation, *batches: Batch) -> str:
    with pytest.raises(SourceBroken) as raised:
        evaluate(mapping, *batches)
    return str(raised.value)


def test_a_reading_in_which_no_record_has_a_field_is_rejected_with_the_fields_that_there_are() -> None:
    first, last = batch({"part": "a", "mas": "1"}, last=False), batch({"part": "b", "unit": "kg"})
    assert sentence(Mapping([MASS]), first, last) == (
        "No record has a field 'mass'; the fields are 'part', 'mas', 'unit'. Did you mean 'mas'? "
        "If the source may lack it, add it to 'optional'."
    )


def test_a_header_decides_with_the_first_batch_and_without_any_record() -> None:
    empty = Batch(
        records=pl.DataFrame(schema={"part": pl.String, "mass_kg": pl.String}),
        positions=pl.Series([], dtype=pl.Int64),
        cursor={},
        header=True,
    )
    assert evaluate(Mapping([EntrySpec(key="{part}", value="{mass_kg}")]), empty) is None
    assert sentence(Mapping([EntrySpec(key="{part}", value="{mass_k}")]), empty).startswith(
        "There is no column 'mass_k'; the columns are 'part', 'mass_kg'. Did you mean 'mass_kg'?"
    )


@pytest.mark.parametrize(
    "batches",
    [
        [batch({"part": "a"}, last=False), batch({"part": "b", "mass": "1"})],
        [batch({"part": "a", "mass": None})],
        [batch()],
        [batch({"part": "a"}, last=False)],
    ],
    ids=["a later record has it", "its value is null", "there is no record", "the reading has no end yet"],
)
def test_a_reading_is_not_rejected(batches: Sequence[Batch]) -> None:
    assert evaluate(Mapping([MASS]), *batches) is None


def test_a_rejected_record_and_a_known_section_may_have_the_field() -> None:
    lacking = batch({"part": "a"})
    known = Section(digest=b"d", records=5, known=True)
    fields = AbsentFields(Mapping([MASS]), whole=True)
    sections = (Section(digest=b"", records=1), known)
    assert fields.add(replace(lacking, sections=sections)) is None
    reject = Reject(position=2, reason="It is too long.", field="note", record={"part": "b", "mass": "1", "note": "…"})
    assert AbsentFields(Mapping([MASS]), whole=True).add(replace(lacking, rejects=(reject,))) is None


def test_each_batch_of_a_stream_is_evaluated_alone() -> None:
    good, bad = batch({"part": "a", "mass": "1"}, last=False), batch({"part": "b"}, {"part": "c"}, last=False)
    assert evaluate(Mapping([MASS]), good, whole=False) is None
    absent = evaluate(Mapping([MASS]), good, bad, whole=False)
    assert absent is not None
    assert (absent.name, absent.sentence[:26]) == ("mass", "No record has a field 'mas")


def test_long_names_of_a_stream_do_not_make_a_long_reason() -> None:
    absent = evaluate(
        Mapping([MASS]), batch({"part": "a"} | {f"{number} {'x' * 500}": "1" for number in range(5)}), whole=False
    )
    assert absent is not None
    assert (absent.sentence[:26], len(absent.sentence) <= 2_001) == ("No record has a field 'mas", True)


TABLE = TableSource(file="t.csv", key="k", value="v")
PLACES = [
    (EntrySpec(key="{gone}", value="{part}"), "gone"),
    (EntrySpec(key="{part}", value="{gone}"), "gone"),
    (EntrySpec(key="{part}", value="{part}", type="{gone}"), "gone"),
    (EntrySpec(key="{part}", value="{part}", where="gone = '1'"), "gone"),
    (EntrySpec(key="{part}", value="{x}", let=(("x", "UPPER(gone)"),)), "gone"),
    (EntrySpec(key="{part}", expression="COALESCE(gone, part)"), "gone"),
    (EntrySpec(key="{part}", value="{x}", lookup=(("x", LookupSpec(table=TABLE, by="gone", missing="none")),)), "gone"),
    (EntrySpec(key="{part}.{column}", columns=("part", "gone")), "gone"),
    (EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("gone_*",))), "gone_*"),
    (EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",), excluded=("gone",))), "gone"),
    (EntrySpec(key="{part}.{gone}.{column}", selection=ColumnSelection(match=("mass",))), "gone"),
    (EntrySpec(key="{part}.{file.preamble.gone}", value="{part}"), "file.preamble.gone"),
    (EntrySpec(key="{part}", value="{file.owner}"), "file.owner"),
    (
        EntrySpec(key="{part}", value="{part}", rules=ValueRules(unit=UnitRule(source="{units.gone}", target="kg"))),
        "units.gone",
    ),
    (EntrySpec(each=("gone",), key="{n}", value="{v}"), "gone"),
    (EntrySpec(each=("list",), key="{parent.gone}.{n}", value="{v}"), "parent.gone"),
    (EntrySpec(each=("list",), key="{n}", value="{gone}"), "gone"),
    (EntrySpec(each=("list", "gone"), key="{parent.n}", value="{x}"), "gone"),
    (EntrySpec(each=("list", "inner"), key="{parent.gone}.{m}", value="{m}"), "parent.gone"),
    (EntrySpec(each=("list", "inner"), key="{m}", value="{gone}"), "gone"),
]


@pytest.mark.parametrize(("spec", "name"), PLACES)
def test_every_place_where_a_mapping_names_a_field_is_checked_unless_it_is_optional(spec: EntrySpec, name: str) -> None:
    lists = '[{"n": "1", "v": "2", "inner": [{"m": "3"}]}]'
    reading = batch({"part": "a", "mass": "1", "list": lists})
    rejected = sentence(Mapping([spec]), reading)
    assert name.removeprefix("parent.").removeprefix("file.preamble.") in rejected
    assert rejected.endswith("If the source may lack it, add it to 'optional'.")
    optional = EntrySpec(**{field: getattr(spec, field) for field in spec.__struct_fields__} | {"optional": (name,)})
    assert name in Mapping([optional]).names or name.startswith("units.")
    assert evaluate(Mapping([optional]), reading) is None


def test_children_with_null_have_the_field_and_a_list_without_items_says_nothing() -> None:
    mapping = Mapping([EntrySpec(each=("list",), key="{n}", value="{v}")])
    assert evaluate(mapping, batch({"list": '[{"n": "1", "v": null}]'})) is None
    assert evaluate(mapping, batch({"list": "[]"})) is None
    assert (
        evaluate(mapping, batch({"list": '[{"n": "1"}]'}, last=False), batch({"list": '[{"n": "2", "v": 3}]'})) is None
    )
    assert sentence(mapping, batch({"list": '[{"n": "1"}]'}, last=False), batch({"list": "[]"})) == (
        "No item of 'list' has a field 'v', which the mapping names. If the source may lack it, add it to 'optional'."
    )


def test_children_of_unchanged_records_are_not_read_so_nothing_is_absent() -> None:
    mapping = Mapping([EntrySpec(each=("list",), key="{n}", value="{v}")])
    fields = AbsentFields(mapping, whole=True)
    assert fields.add_children({(("list",), "v"): False}, is_whole=False, last=True) is None


def test_an_object_in_the_place_of_a_list_rejects_its_record_only() -> None:
    mapping = Mapping([EntrySpec(each=("list",), key="{n}", value="{v}")])
    assert evaluate(mapping, batch({"list.n": "1"})) is None


def test_a_group_names_fields_too() -> None:
    spec = GroupSpec(
        by=("part",),
        take=(
            ("mass", AggregateSpec(function="sum", field="mass_kg")),
            ("n", AggregateSpec(function="count", field=None)),
        ),
        where="status <> 'failed'",
        let=(("day", "LEFT(at, 10)"),),
    )
    reading = batch({"part": "a", "mass_kg": "1"})
    assert sentence(Aggregation(spec), reading).startswith(
        "No record has a field 'status'; the fields are 'part', 'mass_kg'."
    )
    optional = GroupSpec(by=spec.by, take=spec.take, where=spec.where, optional=("status",))
    assert evaluate(Aggregation(optional), reading) is None


def test_the_names_of_many_fields_are_not_collected() -> None:
    mapping, fields = Mapping([MASS]), None
    fields = AbsentFields(mapping, whole=True)
    for number in range(30):
        fields.add(batch({"part": "a"} | {f"field {number} {one}": "1" for one in range(100)}, last=False))
    with pytest.raises(SourceBroken, match=r"'part', 'field 0 0', .* and 988 more"):
        fields.add(batch({"part": "a"}))
