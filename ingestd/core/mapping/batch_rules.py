"""The rules of a mapping for batches with the same columns, and the names that the rules use."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ingestd.core.mapping.rule_group import FILE, FILE_NAME, FILE_PART, RuleGroup


class UsedNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of fields of records, and of facts of a batch."""

    fields: tuple[str, ...]
    facts: tuple[str, ...]


class BatchRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for batches with these ``columns``, one group for each specification.

    ``used``: the names that the rules use. ``required``: the names that at least one record of a reading must have.
    """

    columns: tuple[str, ...]
    groups: tuple[RuleGroup, ...]
    used: UsedNames
    required: UsedNames

    @classmethod
    def of(cls, columns: Iterable[str], groups: Iterable[RuleGroup]) -> BatchRules:
        """Return the rules of ``groups``, which must be compiled for ``columns``."""
        groups = tuple(groups)
        return cls(
            columns=tuple(columns),
            groups=groups,
            used=_names_of(name for group in groups for name in group.record_columns),
            required=_names_of(name for group in groups for name in group.required),
        )


def _names_of(columns: Iterable[str]) -> UsedNames:
    names = [FILE_NAME if name.startswith(FILE_PART) else name for name in columns]
    return UsedNames(
        fields=tuple(dict.fromkeys(name for name in names if not name.startswith(FILE))),
        facts=tuple(dict.fromkeys(name for name in names if name.startswith(FILE))),
    )
