"""The steps from one record to one entry, for people. The results come from the code that maps batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRefused, ValueRules
from ingestd.core.mapping.program import VALUE, Program
from ingestd.core.mapping.rule_group import EntryRule, RuleGroup, template_text, with_facts
from ingestd.core.mapping.specification import NO_RULES, EntrySpec
from ingestd.core.normal_form import nfc_texts


class MappingStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step. ``name``: the setting. ``text``: the setting's content. ``result``: the text after this step; None: no value.

    The names of the members are part of the output of `ingestd trace --json`.
    """

    name: str
    text: str
    result: str | None


class RecordSteps(msgspec.Struct, frozen=True, kw_only=True):
    """How a record makes an entry. ``record`` and ``facts`` have the fields and facts that the mapping uses.

    ``value`` is None if the record makes no entry. ``refusal``: the reason, if the record is rejected.
    """

    record: Mapping[str, str | None]
    facts: Mapping[str, str]
    steps: tuple[MappingStep, ...]
    value: str | None
    data_type: str
    refusal: str


class FoundEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one entry; see `RecordSteps` for ``record`` and ``facts``."""

    record: Mapping[str, str | None]
    facts: Mapping[str, str]
    steps: tuple[MappingStep, ...]


def find_entry(
    spec: EntrySpec, group: RuleGroup, frame: pl.DataFrame, bound: Mapping[str, str], key: str
) -> FoundEntry | None:
    """Return the steps by which a record or child in ``frame`` makes the entry ``key``; None if no rule makes it.

    ``frame``: the fields that the mapping uses. ``bound``: the facts that the rules use.
    """
    scope = with_facts(frame, bound)
    scope = group.program.evaluate(scope) if group.program is not None else scope
    found = None
    for rule in group.rules:
        keys = scope.with_columns(template_text(rule.key.bind(bound)).alias("\0key"))["\0key"]
        rows = (nfc_texts(keys) == key).arg_true()
        if rows.len():
            found = (rule, rows[-1])  # the last of several equal keys is valid
    if found is None:
        return None
    rule, row = found
    names = dict.fromkeys(group.columns_of(rule.fields))
    names |= dict.fromkeys(group.program.where.columns if group.program is not None and group.program.where else ())
    return FoundEntry(
        record={name: frame[name][row] for name in names if name in frame.columns},
        facts={name: text for name, text in bound.items() if name in names},
        steps=tuple(_entry_steps(spec, group, rule, bound, scope[row : row + 1])),
    )


def _entry_steps(
    spec: EntrySpec, group: RuleGroup, rule: EntryRule, bound: Mapping[str, str], scope: pl.DataFrame
) -> Iterator[MappingStep]:
    """Yield the steps from one evaluated record to an entry of one rule."""
    if group.program is not None:
        yield from program_steps(spec, group.program, scope)
    value, unit = (scope.select(template_text(template.bind(bound))).item() for template in (rule.value, rule.unit))
    said = spec.expression if spec.expression is not None and rule.value.fields == (VALUE,) else rule.value.text
    yield MappingStep(name="value", text=said, result=value)
    if group.values is not None and value is not None:
        yield from value_steps(group.values, value, unit)
    for name, template in (("type", rule.type), ("key", rule.key)):
        if template.fields or name == "key":
            result = scope.select(template_text(template.bind(bound))).item()
            yield MappingStep(name=name, text=template.text, result=result)


def program_steps(spec: EntrySpec, program: Program, evaluated: pl.DataFrame) -> Iterator[MappingStep]:
    """Yield the steps of ``lookup``, ``let`` and ``where``. ``evaluated``: one record, from `Program.evaluate`."""
    for name, lookup in spec.lookup:
        key = evaluated.select(program.lookup_keys[name].text()).item()
        where = f"{lookup.table.key} = {key}" if key is not None else f"without {lookup.table.key}"
        text = f"{name}: {lookup.table.value} of {lookup.table.file}, {where}"
        yield MappingStep(name="lookup", text=text, result=evaluated[name].item())
    for name, expression in spec.let:
        yield MappingStep(name="let", text=f"{name}: {expression}", result=evaluated[name].item())
    if spec.where is not None and program.where is not None:
        yield MappingStep(name="where", text=spec.where, result=evaluated.select(program.where.text()).item())


def value_steps(rules: ValueRules, text: str, unit: str | None) -> Iterator[MappingStep]:
    """Yield a step for each rule of a value, in the order of their application.

    The result of a step is the conversion by all rules up to the rule of this step. A unit with an inexact factor needs a later
    rule that rounds (digits, decimals), so both rules are one step.
    """
    known = NO_RULES
    names: list[str] = []
    texts: list[str] = []
    for field in msgspec.structs.fields(ValueRules):
        rule = getattr(rules, field.name)
        if rule == field.default:
            continue
        known = replace(known, **{field.name: rule})
        names.append(field.name)
        texts.append(_shown(rule, unit))
        try:
            result = known.convert(text, unit)
        except ValueRefused:
            continue
        yield MappingStep(name=", ".join(names), text=", ".join(filter(None, texts)), result=result)
        if result is None:
            return
        names, texts = [], []
    if names:
        yield MappingStep(name=names[0], text=texts[0], result=None)


def _shown(rule: object, unit: str | None) -> str:
    if isinstance(rule, UnitRule):
        return f"{unit or 'no unit'} to {rule.target}"
    if isinstance(rule, DateRule):
        zones = (f"from {rule.timezone}" if rule.timezone else "", f"to {rule.target}" if rule.target else "")
        return " ".join(filter(None, (rule.form, *zones)))
    if isinstance(rule, PadRule):
        return f"{rule.width} with '{rule.fill}'"
    if isinstance(rule, tuple):
        return ", ".join(f"'{one}'" if isinstance(one, str) else f"'{one[0]}' is '{one[1]}'" for one in rule)
    return "" if isinstance(rule, bool) else f"'{rule}'" if isinstance(rule, str) else str(rule)
