"""The content of the configuration page: the settings in use without secrets, and the mistakes of the file on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ingestd.commands.configuration_check import check_configuration
from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import ConfigurationChanges, check_unchangeable, compare
from ingestd.daemon.reload import read_again
from ingestd.process.redaction import MASK, redact
from ingestd.settings.model import Settings

_QUERY = re.compile(r"(://(?:(?!://)[^\s?#])*+\?)[^\s#]+")
"""The query of an address. It may contain credentials, so `docs/http.md` promises that it is not shown."""


class SettingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The general settings, or the settings of one pipeline. ``values``: the values as text, by key path."""

    name: str
    values: Mapping[str, str]


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration file on disk.

    ``mistakes``: if there are any, a reload changes nothing. ``sentences``: the results of the check of a file without
    mistakes, unusual settings first. ``changes``: the changes of a reload; None for a file with mistakes.
    """

    mistakes: tuple[Mistake, ...] = ()
    sentences: tuple[str, ...] = ()
    changes: ConfigurationChanges | None = None

    @property
    def differs(self) -> bool:
        """Whether a reload would change something."""
        changes = self.changes
        return changes is not None and bool(
            changes.ended or changes.started or changes.service or changes.api_key or changes.rejected
        )


def file_state(running: Configuration) -> FileState:
    """Read the configuration file again, and compare it with the configuration in use. Blocks."""
    try:
        found = read_again(running)
        check_unchangeable(running, found)
    except ConfigurationError as error:
        return FileState(mistakes=error.mistakes)
    findings = sorted(check_configuration(found), key=lambda finding: finding.step.outcome == "passed")
    return FileState(
        sentences=tuple(
            finding.step.sentence
            if finding.subject == "configuration"
            else f"{finding.subject}: {finding.step.sentence}"
            for finding in findings
        ),
        changes=compare(running.settings, found.settings),
    )


def setting_groups(settings: Settings) -> list[SettingGroup]:
    """Return the settings that have a value from the file or a default, without secrets.

    A text is masked if its type or its field's name marks a secret, or if it is a known secret (`ingestd.process.redaction`).
    """
    # No warnings: some parts of a pipeline are declared as notations, but validation has replaced the notations by values.
    found = redact(settings.model_dump(mode="python", warnings=False))
    if not isinstance(found, dict):
        raise TypeError(f"the settings are shown as {type(found).__name__}")
    pipelines = found.pop("pipelines")
    groups = [("general", found), *((str(one.get("name")), one) for one in pipelines)]
    return [SettingGroup(name=name, values=dict(_flat(value, ""))) for name, value in groups]


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each value; empty values are omitted."""
    match value:
        case None | "" | []:
            return
        case dict():
            for name, item in value.items():
                # In the file, the options of a connector are at the same level as its name.
                inner = path if name == "options" else f"{path}.{name}" if path else name
                yield from _flat(item, inner)
        case list() if all(not isinstance(item, dict | list) for item in value):
            yield path, ", ".join(text for item in value for _, text in _flat(item, path))
        case list():
            for number, item in enumerate(value, start=1):
                yield from _flat(item, f"{path}[{number}]")
        case bool():
            yield path, "true" if value else "false"
        case _:
            yield path, _QUERY.sub(rf"\g<1>{MASK}", str(value))
