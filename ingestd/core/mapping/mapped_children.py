"""Entries of children: the items of lists, mapped by the rules for these lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import polars as pl

from ingestd.core.mapping.children import LIST, POSITION, RECORD, Children, expand
from ingestd.core.mapping.mapped import RejectedRow
from ingestd.core.mapping.program import ORDER
from ingestd.core.mapping.rule_group import FILE, UNITS, Faults, RuleGroup, map_groups


class MappedChildren(msgspec.Struct, frozen=True, kw_only=True):
    """The result for children. ``record_faults``: why whole records are rejected. ``fields``: see `Children.found`."""

    entries: pl.DataFrame
    rejected: list[RejectedRow]
    record_faults: Faults
    fields: Mapping[str, bool]


def map_children(
    each: tuple[str, ...], groups: Iterable[RuleGroup], frame: pl.DataFrame, facts: Mapping[str, str]
) -> MappedChildren:
    """Map the children in the lists ``each`` of some records, by the rules for these lists."""
    expanded = expand_children(each, groups, frame, facts)
    children, faults = expanded.frame, expanded.faults
    entries, bad = map_groups([group for group in groups if group.each == each], children, facts)
    entries = entries.filter(~pl.col(ORDER).is_in(list(bad)))
    rejected: list[RejectedRow] = [
        (children[RECORD][row], children[POSITION][row], *fault) for row, fault in sorted(bad.items())
    ]
    rejected += [(one.record, one.position, one.reason, one.field) for one in faults if one.position]
    return MappedChildren(
        entries=entries.with_columns(children[RECORD].gather(entries[ORDER]).alias(ORDER)),
        rejected=rejected,
        record_faults={one.record: (one.reason, one.field) for one in faults if not one.position},
        fields=expanded.found,
    )


def expand_children(
    each: tuple[str, ...], groups: Iterable[RuleGroup], frame: pl.DataFrame, facts: Mapping[str, str]
) -> Children:
    """Return the children of some records with the names that the rules use, and the problems of the lists."""
    of_lists = [group for group in groups if group.each == each]
    names = tuple(dict.fromkeys(name for group in of_lists for name in group.child_names))
    found = expand(
        frame.with_columns(pl.col(f"{LIST}{each[0]}").alias(LIST)),
        each,
        names,
        required={name for group in of_lists for name in group.required_of_children},
        required_lists={name for group in of_lists for name in each[1:] if name not in group.optional},
    )
    units = {name: text for name, text in facts.items() if name in names and name.startswith(UNITS)}
    missing = [name for group in of_lists for name in group.columns if name.startswith(FILE) and name not in facts]
    facts_of_all = [pl.lit(text).alias(name) for name, text in units.items()]
    facts_of_all += [pl.lit(None, dtype=pl.String).alias(name) for name in dict.fromkeys(missing)]
    return msgspec.structs.replace(found, frame=found.frame.with_columns(facts_of_all))
