"""From a command line to settings: which file it is, what it says, which of its pipelines are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingestd.core.errors import IngestdError
from ingestd.registry import connector_class
from ingestd.settings import Settings, find_configuration, load_settings
from ingestd.settings.node import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A configuration file that was read without a mistake."""

    path: Path
    settings: Settings
    secrets: bool = True
    """False: read for its state file only, see `load_settings`."""

    @property
    def base(self) -> Path:
        """The folder at which relative paths begin."""
        return self.path.parent


class PipelineUnknown(IngestdError):
    """A command names a pipeline that the configuration does not have."""


def read_configuration(
    explicit: Path | None, *, environment: Mapping[str, str], cwd: Path, secrets: bool = True
) -> Configuration:
    """The configuration that ``--config``, INGESTD_CONFIG or the usual places name. ``secrets``: see `load_settings`.

    Raises:
        ConfigurationError: there is none, or it has mistakes; all of them at once.
    """
    path = find_configuration(explicit, environment, cwd)
    settings = load_settings(path, options_of=connector_class, environment=environment, secrets=secrets)
    return Configuration(path=path, settings=settings, secrets=secrets)


def with_secrets(configuration: Configuration, *, environment: Mapping[str, str]) -> Configuration:
    """The same file, read again with its secrets if it was read without them.

    Raises:
        ConfigurationError: it has mistakes, among them placeholders that can't be filled.
    """
    if configuration.secrets:
        return configuration
    return read_configuration(configuration.path, environment=environment, cwd=configuration.base)


def chosen_pipelines(configuration: Configuration, names: Sequence[str]) -> list[str]:
    """The pipelines that ``names`` name, each once; all of them where nothing is named.

    Raises:
        PipelineUnknown: a name is none of the configuration's.
    """
    known = [pipeline.name for pipeline in configuration.settings.pipelines]
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f" It has {', '.join(known)}."
            raise PipelineUnknown(f"There is no pipeline '{name}' in {configuration.path}.{hint}")
    return list(dict.fromkeys(names)) or known
