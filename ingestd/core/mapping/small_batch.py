"""The mapping of a few records, by plain Python instead of column expressions: the same entries and the same reasons.

A column expression costs the same for one record as for hundreds: handing it to a thread takes longer than the work.
`tests/property/test_small_batches.py` compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

import polars as pl

from ingestd.core.mapping.conversion import ValueRefused, ValueRules
from ingestd.core.mapping.rule_group import DEADBAND, EntryRule, Faults, RuleGroup, fault_reason, refusal_reason
from ingestd.core.normal_form import nfc
from ingestd.core.template import Literal, Template

MAX_RECORDS = 200
"""More records are mapped faster by columns."""

_Column: TypeAlias = Sequence[str | None]
_Entry: TypeAlias = tuple[int, str, str, str, str | None]
"""The number of the record; key, value, data type and dead-band."""


def is_small(records: pl.DataFrame, groups: Iterable[RuleGroup]) -> bool:
    """Return whether `map_small` takes these records: there are few, and no rule has expressions or is for children."""
    return records.height <= MAX_RECORDS and all(group.program is None and not group.each for group in groups)


def map_small(
    groups: Iterable[RuleGroup],
    columns: Mapping[str, _Column],
    positions: pl.Series,
    hashes: pl.Series,
    facts: Mapping[str, str],
) -> tuple[pl.DataFrame, Faults]:
    """Return the entries of the records without faults, in their order, and the faults by the number of the record.

    ``columns``: the columns that the rules use.
    """
    entries: list[_Entry] = []
    bad: Faults = {}
    for group in groups:
        bound = group.facts(facts)
        for rule in group.rules:
            entries += _map_rule(group, rule, bound, columns, height=positions.len(), bad=bad)
    if bad:
        entries = [entry for entry in entries if entry[0] not in bad]
    entries.sort(key=itemgetter(0))  # stable: the entries of one record stay in the order of the rules
    order = [entry[0] for entry in entries]
    texts = {
        name: pl.Series(name, [entry[place] for entry in entries], dtype=pl.String)
        for place, name in enumerate(("key", "value", "data_type", DEADBAND), start=1)
    }
    position, row_hash = positions.to_list(), hashes.to_list()
    return pl.DataFrame(
        {
            **texts,
            "row_hash": pl.Series("row_hash", [row_hash[row] for row in order], dtype=hashes.dtype),
            "position": pl.Series("position", [position[row] for row in order], dtype=positions.dtype),
        }
    ), bad


def _map_rule(
    group: RuleGroup,
    rule: EntryRule,
    bound: Mapping[str, str],
    columns: Mapping[str, _Column],
    *,
    height: int,
    bad: Faults,
) -> list[_Entry]:
    """Return the entries of one rule; add the rejected records to ``bad``."""
    key, data_type = rule.key.bind(bound), rule.type.bind(bound)
    needed = {name: columns[name] for name in (*key.fields, *data_type.fields)}
    parts = (key, rule.value.bind(bound), data_type, rule.unit.bind(bound))
    texts = zip(*(_texts(template, columns, height) for template in parts), strict=True)
    fields = group.columns_of(rule.value.fields)
    convert = _converter(group.values)
    entries: list[_Entry] = []
    for row, (made, value, kind, unit) in enumerate(texts):
        is_complete = all(column[row] for column in needed.values())
        if not made or kind is None or not is_complete or _has_nul(made, value, kind):
            record = {name: column[row] for name, column in needed.items()}
            bad.setdefault(row, fault_reason(key, data_type, made, record))
        elif value is not None:
            try:
                converted = convert(value, unit)
            except ValueRefused as refused:
                bad.setdefault(row, refusal_reason(refused, fields[0] if fields else ""))
            else:
                if converted is not None:
                    entries.append((row, nfc(made), converted, kind, group.deadband))
    return entries


def _texts(template: Template, columns: Mapping[str, _Column], height: int) -> Sequence[str | None]:
    """Return the template as a column of text; None if a field is null."""
    parts = [[part.text] * height if isinstance(part, Literal) else columns[part.name] for part in template.parts]
    if not parts:
        return [""] * height
    return parts[0] if len(parts) == 1 else [_joined(row) for row in zip(*parts, strict=True)]


def _joined(parts: tuple[str | None, ...]) -> str | None:
    return None if None in parts else "".join(parts)  # type: ignore[arg-type]


def _has_nul(*texts: str | None) -> bool:
    return any(text is not None and "\0" in text for text in texts)


def _converter(rules: ValueRules | None) -> Callable[[str, str | None], str | None]:
    return (lambda value, _: value) if rules is None else rules.convert
