"""The text of an initial configuration, with comments. Pure rules."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

import msgspec

from ingestd.core.contract import ColumnContract
from ingestd.core.template import Field, TemplateError, parse_template

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]+[.,][0-9]+")
_NUMERIC = frozenset({"integer", "decimal"})


class InitialFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of files like the sample. ``path`` is relative to the configuration, or absolute."""

    path: str
    pattern: str


class InitialTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a database. ``url`` is a text of the configuration: a placeholder if the address has a password."""

    url: str
    table: str


class InitialSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose. ``url`` and ``api_key`` of the service are texts of the configuration.

    ``state``: the state file, relative to the configuration.
    ``key``: the column that names a record. ``numbers`` and ``texts``: the columns with values; ``commas``: those with
    numbers that have a decimal comma, and whether points separate their thousands.
    """

    url: str
    api_key: str
    state: str
    workspace: str
    sink: str
    pipeline: str
    source: InitialFolder | InitialTable
    key: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    commas: Mapping[str, bool] = msgspec.field(default_factory=dict)


def configuration_text(chosen: InitialSettings) -> str:
    """Return the configuration as YAML. A text of the user is in quotes, and '${' in it is no placeholder."""
    lines = [
        "# The configuration of ingestd. 'ingestd check' finds mistakes, 'ingestd plan' shows what a sync would do,",
        "# 'ingestd sync' does it once, and 'ingestd run' is the daemon.",
        "",
        "service:",
        f"  url: {chosen.url if '${' in chosen.url else _text(chosen.url)}",
        f'  api_key: "{chosen.api_key}"    # a reference: the key itself is not in this file',
        "",
        f"state: {_text(chosen.state)}    # what was read and delivered; it contains values",
        "",
        "pipelines:",
        f"  - name: {chosen.pipeline}",
        *_source_lines(chosen.source),
        "    # One entry for each record and column. The key must be different for each record.",
        "    entries:",
    ]
    if chosen.numbers:
        lines.append(_entries_line(chosen.key, chosen.numbers, more=""))
    for thousands, rules in ((False, 'decimal: ","'), (True, 'decimal: ",", group: "."')):
        if columns := tuple(name for name, has_thousands in chosen.commas.items() if has_thousands is thousands):
            lines.append(_entries_line(chosen.key, columns, more=f", values: {{{rules}}}"))
    if chosen.texts:
        lines.append(_entries_line(chosen.key, chosen.texts, more=", type: text"))
    lines += [f"    sink: {{workspace: {_text(chosen.workspace)}, label: {_text(chosen.sink)}}}", ""]
    return "\n".join(lines)


def _source_lines(source: InitialFolder | InitialTable) -> list[str]:
    if isinstance(source, InitialFolder):
        return [
            "    source:",
            "      connector: directory",
            f"      path: {_text(source.path)}    # files that appear or change here are read",
            f"      pattern: {_text(source.pattern)}",
        ]
    return [
        "    source:",
        "      connector: database",
        f"      url: {_text(source.url) if '${' not in source.url else json.dumps(source.url)}",
        f"      table: {_text(source.table)}",
        "    schedule: {every: 15m}    # how often the table is read",
    ]


def _entries_line(key: str, columns: tuple[str, ...], *, more: str) -> str:
    template = json.dumps(f"{{{key}}}.{{column}}", ensure_ascii=False)
    return f"      - {{key: {template}, columns: [{', '.join(map(_text, columns))}]{more}}}"


def _text(text: str) -> str:
    """Return a text as YAML in double quotes, which are those of JSON."""
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)


def is_possible_key(column: str) -> bool:
    """Return True if a template can name the column."""
    try:
        parts = parse_template(f"{{{column}}}").parts
    except TemplateError:
        return False
    return parts == (Field(column),) and column != "column" and "${" not in column


def suggested_key(
    columns: Mapping[str, ColumnContract], commas: Collection[str] = (), repeated: Collection[str] = ()
) -> str | None:
    """Return the column that probably names a record: the first one that is always filled.

    A column without repeated values is preferred, then one that has no numbers.
    """
    possible = [name for name, column in columns.items() if is_possible_key(name) and column.filled]
    possible.sort(key=lambda name: (name in repeated, _is_numeric(name, columns, commas)))
    return next(iter(possible), None)


def suggested_values(columns: Mapping[str, ColumnContract], key: str, commas: Collection[str] = ()) -> tuple[str, ...]:
    """Return the columns of numbers without the key; every other column if there is none."""
    others = [name for name in columns if name != key]
    return tuple([name for name in others if _is_numeric(name, columns, commas)] or others)


def has_no_header(names: Collection[str]) -> bool:
    """Return True if the names of columns look like the first record. Years may be names of columns; fractions are not."""
    return any(map(_FRACTION.fullmatch, names)) or all(map(_WHOLE_NUMBER.fullmatch, names))


def by_type(columns: Mapping[str, ColumnContract], chosen: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the chosen columns of numbers, and the other chosen columns."""
    numbers = tuple(name for name in chosen if columns[name].type in _NUMERIC)
    return numbers, tuple(name for name in chosen if name not in numbers)


def _is_numeric(name: str, columns: Mapping[str, ColumnContract], commas: Collection[str]) -> bool:
    return columns[name].type in _NUMERIC or name in commas
