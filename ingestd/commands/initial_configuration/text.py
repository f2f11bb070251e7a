"""The text of an initial configuration, with comments. Performs no I/O."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import msgspec

from ingestd.commands.initial_configuration import record_keys
from ingestd.core.column_profile import ColumnProfile, UnclearNumbers
from ingestd.core.contract import ColumnContract
from ingestd.core.phrases import counted

NUMERIC = frozenset({"integer", "decimal"})
_RULES: Mapping[object, str] = {
    False: 'decimal: ","',
    True: 'decimal: ",", group: "."',
    "comma": 'decimal: ".", group: ","',
}
"""The settings for three notations: decimal comma; decimal comma and points between thousands; commas between thousands."""


class InitialFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of files like the sample. ``path`` is relative to the configuration, or absolute.

    ``format``: the setting `format`; empty if file names select the format. ``found``: sentences about the sample.
    """

    path: str
    pattern: str
    format: Mapping[str, object] = msgspec.field(default_factory=dict)
    found: tuple[str, ...] = ()


class InitialTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a database. ``url``: the text of the setting; a placeholder if the address has a password."""

    url: str
    table: str


class InitialEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Columns with the same notation. ``rules``: further settings of the columns' entries as YAML, or empty."""

    columns: tuple[str, ...]
    rules: str = ""


class InitialSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of the user. ``url``, ``api_key``: the texts of the service's settings.

    ``state``: the state file, relative to the configuration. ``key``: the columns that identify a record. ``repeated``: the
    number of records of the sample with the key of an earlier record.
    """

    url: str
    api_key: str
    state: str
    workspace: str
    sink: str
    pipeline: str
    source: InitialFolder | InitialTable
    key: tuple[str, ...]
    entries: tuple[InitialEntries, ...]
    repeated: int = 0


def configuration_text(chosen: InitialSettings) -> str:
    """Return the configuration as YAML. Texts of the user are quoted, and '${' in these texts is escaped."""
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
        *_key_lines(chosen),
        "    entries:",
        *(_entries_line(chosen.key, one) for one in chosen.entries),
        "    # A run that removes at least half of the entries, or changes half of the numbers by a factor such as 1000, is held",
        "    # until 'ingestd approve' or 'ingestd discard'.",
        "    guard: {removed: 50}",
        f"    sink: {{workspace: {_text(chosen.workspace)}, label: {_text(chosen.sink)}}}",
        "",
    ]
    return "\n".join(lines)


def _key_lines(chosen: InitialSettings) -> list[str]:
    lines = ["    # One entry for each record and column. The key must be different for each record."]
    if chosen.repeated:
        lines.append(
            f"    # In the sample {counted(chosen.repeated, 'record')} had the key of an earlier record, and replaced its values."
        )
    if isinstance(chosen.source, InitialFolder) and record_keys.FILE not in chosen.key:
        lines.append(
            "    # A later file replaces the values of equal keys. A key that begins with {file.stem}. keeps those of each file."
        )
    return lines


def _source_lines(source: InitialFolder | InitialTable) -> list[str]:
    if isinstance(source, InitialFolder):
        return [
            *(f"    # {_one_line(sentence)}" for sentence in source.found),
            "    source:",
            "      connector: directory",
            f"      path: {_text(source.path)}    # files that appear or change here are read",
            f"      pattern: {_text(source.pattern)}",
            *([f"      format: {_flow(source.format)}"] if source.format else []),
            "      # If the folder is on a share: create an empty file .mounted there, and activate the next line. Then a share",
            "      # that is not mounted counts as unavailable, and not as an empty folder.",
            "      # canary: .mounted",
        ]
    return [
        "    source:",
        "      connector: database",
        f"      url: {_text(source.url) if '${' not in source.url else json.dumps(source.url)}",
        f"      table: {_text(source.table)}",
        "    schedule: {every: 15m}    # how often the table is read",
    ]


def _entries_line(key: tuple[str, ...], entries: InitialEntries) -> str:
    template = json.dumps("".join(f"{{{one}}}." for one in key) + "{column}", ensure_ascii=False)
    rules = f", {entries.rules}" if entries.rules else ""
    return f"      - {{key: {template}, columns: [{', '.join(map(_text, entries.columns))}]{rules}}}"


def _flow(settings: Mapping[str, object]) -> str:
    """Return settings as a YAML mapping in one line."""

    def value(given: object) -> str:
        if isinstance(given, list):
            return f"[{', '.join(map(value, given))}]"
        return _text(given) if isinstance(given, str) else json.dumps(given)

    kind = f"type: {settings['type']}"
    return f"{{{', '.join([kind, *(f'{name}: {value(one)}' for name, one in settings.items() if name != 'type')])}}}"


def _one_line(text: str) -> str:
    """Return a text for a comment of one line: unprintable characters become spaces."""
    return "".join(one if one.isprintable() else " " for one in text)


def _text(text: str) -> str:
    """Return a text as YAML, in double quotes as in JSON; in single quotes if it has backslashes."""
    text = text.replace("${", "$${")
    if "\\" in text and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)


def suggested_values(
    columns: Mapping[str, ColumnContract], key: Collection[str], numeric: Collection[str], *, kind: str
) -> tuple[str, ...]:
    """Return the numeric columns that are not in the key. If there are none, return all columns that are not in the key.

    ``kind``: the name of the format. For JUnit, return status and duration of a test; for ReqIF, attributes of a requirement.
    """
    others = [name for name in columns if name not in key and not name.startswith(record_keys.NESTED_PARENT)]
    match kind:
        case "junit":
            return tuple(name for name in ("status", "time") if name in others)
        case "reqif":
            return tuple(name for name in others if not name.startswith("@"))
        case record_keys.DOCUMENT:
            return tuple(others)
    return tuple([name for name in others if name in numeric] or others)


def entries_of(
    profile: ColumnProfile, columns: Sequence[str], unclear: Mapping[str, UnclearNumbers], *, decimal: str
) -> tuple[InitialEntries, ...]:
    """Return the entries of the chosen columns, grouped by notation.

    ``unclear``: see `ColumnProfile.unclear_numbers`. ``decimal``: the decimal separator of the columns in ``unclear``.
    """
    contract, commas = profile.contract(), dict(profile.decimal_commas())
    if decimal == ",":
        commas |= {name: one.points for name, one in unclear.items()}
    thousands = profile.thousands_commas() | {name for name, one in unclear.items() if one.commas}
    groups: dict[str, list[str]] = {}
    for name in columns:
        if name in commas or name in thousands or contract[name].type in NUMERIC:
            notation = _RULES[commas.get(name, "comma")] if name in commas or name in thousands else ""
            gaps = profile.gaps(name)
            # A rule for numbers rejects other texts, also the empty text. Without a rule, only the empty text makes no entry.
            missing = f"missing: {json.dumps(gaps, ensure_ascii=False)}" if gaps and (notation or gaps != [""]) else ""
            values = ", ".join(filter(None, (missing, notation)))
            rules = f"values: {{{values}}}" if values else ""
        else:
            rules = "type: text"
        groups.setdefault(rules, []).append(name)
    ordered = sorted(groups.items(), key=lambda item: (bool(item[0]), not item[0].startswith("values")))
    return tuple(InitialEntries(columns=tuple(names), rules=rules) for rules, names in ordered)
