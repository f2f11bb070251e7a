"""Runs a test case through the pipeline's mapping, as the intake does, and compares the output with the expected output."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import gettempdir

import msgspec
import polars as pl

from ingestd.commands.mapping_test.case_file import ExpectedEntry, MappingCase
from ingestd.core.errors import SourceError
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import AbsentFields, EntrySpec, Mapping
from ingestd.core.record import Batch
from ingestd.core.unreadable import reject_unreadable
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.run import checked_batches
from ingestd.sdk import pack


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a test case. ``differences``: line and sentence of each difference from the expected output.

    ``covered``: the indices of the rules (`rules_of`) that made an expected entry.
    """

    differences: tuple[tuple[int, str], ...]
    covered: frozenset[int]


class MappingRule(msgspec.Struct, frozen=True, kw_only=True):
    """One entry specification of a pipeline, or one column of a specification. ``label``: the name for people."""

    label: str
    mapping: Mapping


class CaseOutput(msgspec.Struct):
    """The output of a mapping for the records of a case.

    ``entries``: value and data type by key. ``rejects``: position, as text, and reason of each rejected record. ``made_by``:
    the keys of each rule's entries, by the rule's index. ``broken``: why the whole source is rejected; None: it is accepted.
    """

    entries: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    rejects: list[tuple[str, str]] = msgspec.field(default_factory=list)
    made_by: dict[int, set[str]] = msgspec.field(default_factory=dict)
    broken: str | None = None


def rules_of(specs: tuple[EntrySpec, ...]) -> tuple[MappingRule, ...]:
    """Return the rules of a pipeline: one for each specification, or for each column that it lists."""
    rules = []
    for number, spec in enumerate(specs, start=1):
        label = f"entries[{number}] {spec.key}"
        if spec.columns:
            rules += [
                MappingRule(
                    label=f"{label}, column {column}",
                    mapping=Mapping((msgspec.structs.replace(spec, columns=(column,)),)),
                )
                for column in spec.columns
            ]
        else:
            rules.append(MappingRule(label=label, mapping=Mapping((spec,))))
    return tuple(rules)


def run_case(
    case: MappingCase,
    *,
    mapping: Mapping,
    rules: tuple[MappingRule, ...],
    sample: Callable[[Path], Iterator[Batch]],
    groups: Aggregation | None = None,
) -> CaseResult:
    """Map the records of a case, and compare the output with the case. For the arguments, see `map_case`."""
    output = map_case(case, mapping=mapping, rules=rules, sample=sample, groups=groups)
    expected = {entry.key for entry in case.entries}
    return CaseResult(
        differences=tuple(_differences(case, output)),
        covered=frozenset(index for index, keys in output.made_by.items() if keys & expected),
    )


def map_case(
    case: MappingCase,
    *,
    mapping: Mapping,
    sample: Callable[[Path], Iterator[Batch]],
    rules: tuple[MappingRule, ...] = (),
    groups: Aggregation | None = None,
) -> CaseOutput:
    """Map the records of a case. ``sample`` reads a file with the source's format. ``groups``: the group stage."""
    output = CaseOutput()
    batches: Iterator[Batch] = (
        dataclasses.replace(batch, facts={**batch.facts, **case.facts})
        for batch in checked_batches(sample(case.sample) if case.sample is not None else iter((_batch(case),)))
    )
    try:
        is_reading = case.sample is not None or case.columns is not None  # ``rows`` alone are no complete reading
        fields = AbsentFields(mapping, whole=is_reading)
        if groups is not None:
            of_groups = AbsentFields(groups, whole=is_reading)
            batches = _grouped(batches, groups, output, of_groups)
        for batch in batches:
            _map(batch, mapping, rules, output, fields)
    except SourceError as error:
        output.broken = str(error)
    return output


def _grouped(
    batches: Iterator[Batch], groups: Aggregation, output: CaseOutput, fields: AbsentFields
) -> Iterator[Batch]:
    """Yield the groups of all batches; add the rejected records to the output."""
    with GroupStage(groups, Path(gettempdir())) as stage:
        for batch in batches:
            batch = reject_unreadable(batch, groups)  # noqa: PLW2901 - the same records
            fields.add(batch)
            output.rejects += [(str(reject.position), reject.reason) for reject in stage.add(batch)]
            if batch.last:
                yield from stage.batches(batch)


def _batch(case: MappingCase) -> Batch:
    header = dict.fromkeys(case.columns or ())
    rows = [{**header, **row} for row in case.rows or ()]
    batch = pack(rows, cursor={}, header=case.columns is not None, last=True)
    if not rows:
        empty = pl.DataFrame(schema=dict.fromkeys(header, pl.String))
        return dataclasses.replace(batch, records=empty)
    return batch


def _map(
    batch: Batch, mapping: Mapping, rules: tuple[MappingRule, ...], output: CaseOutput, fields: AbsentFields
) -> None:
    batch = reject_unreadable(batch, mapping)
    fields.add(batch)
    mapped = mapping.apply(batch.records, batch.positions, mapping.row_hashes(batch.records, batch.facts), batch.facts)
    fields.add_children(mapped.child_fields, is_whole=True, last=batch.last)
    for key, value, data_type in mapped.entries.select("key", "value", "data_type").iter_rows():
        output.entries.pop(key, None)  # the last of equal keys wins
        output.entries[key] = (value, data_type)
    rejects = [*batch.rejects, *(reject for reject, _ in mapped.rejects)]
    output.rejects += [(str(reject.position), reject.reason) for reject in rejects]
    made = set(mapped.entries["key"])
    for index, rule in enumerate(rules):
        hashes = rule.mapping.row_hashes(batch.records, batch.facts)
        alone = rule.mapping.apply(batch.records, batch.positions, hashes, batch.facts)
        output.made_by.setdefault(index, set()).update(made.intersection(alone.entries["key"]))


def _differences(case: MappingCase, output: CaseOutput) -> Iterator[tuple[int, str]]:
    if output.broken is not None:
        if case.broken is None or case.broken not in output.broken:
            yield case.line, f"the whole source was rejected: {output.broken}"
        return
    if case.broken is not None:
        yield case.line, f"expected a rejection of the whole source with '{case.broken}', but it was mapped"
    yield from _entry_differences(case, output)
    yield from _reject_differences(case, output)


def _entry_differences(case: MappingCase, output: CaseOutput) -> Iterator[tuple[int, str]]:
    for entry in case.entries:
        found = output.entries.get(entry.key)
        if found is None:
            yield entry.line, f"no entry {entry.key}; expected {_shown(entry)}"
        elif (entry.value is not None and entry.value != found[0]) or (
            entry.type is not None and entry.type != found[1]
        ):
            yield entry.line, f"{entry.key} is {_text(found[0])} ({found[1]}); expected {_shown(entry)}"
    if not case.partial:
        expected = {entry.key for entry in case.entries}
        for key, (value, data_type) in output.entries.items():
            if key not in expected:
                yield case.line, f"{key} = {_text(value)} ({data_type}) was not expected"


def _reject_differences(case: MappingCase, output: CaseOutput) -> Iterator[tuple[int, str]]:
    left = list(output.rejects)
    for expected in case.rejected:
        matching = [
            one for one in left if expected.row in {"", one[0]} and expected.reason.casefold() in one[1].casefold()
        ]
        if matching:
            left.remove(matching[0])
            continue
        what = f"row {expected.row}" if expected.row else "a row"
        reason = f" with '{expected.reason}'" if expected.reason else ""
        actual = "; ".join(f"{row}: {sentence}" for row, sentence in left) or "none"
        yield expected.line, f"expected a rejection of {what}{reason}; rejections: {actual}"
    if not case.partial:
        for row, reason in left:
            yield case.line, f"row {row} was rejected: {reason}"


def _shown(entry: ExpectedEntry) -> str:
    value = "any value" if entry.value is None else _text(entry.value)
    return f"{value} ({entry.type})" if entry.type is not None else value


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
