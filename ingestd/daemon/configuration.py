"""The configuration of a command: its file, its settings, and the selected pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ingestd.core.errors import IngestdError
from ingestd.core.phrases import nearest
from ingestd.registry import connector_class
from ingestd.settings.configuration_file import find_configuration
from ingestd.settings.loader import load_settings
from ingestd.settings.model import Settings


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A valid configuration file."""

    path: Path
    settings: Settings
    secrets: bool = True
    """Whether all placeholders were filled. If False, placeholders of ``service`` and of the options of sources may be
    unfilled."""

    @property
    def base(self) -> Path:
        """The base folder of relative paths."""
        return self.path.parent


class PipelineUnknown(IngestdError):
    """A command names a pipeline that the configuration does not have."""


def read_configuration(
    explicit: Path | None, *, environment: Mapping[str, str], cwd: Path, secrets: bool = True
) -> Configuration:
    """Read the configuration file that ``--config`` or INGESTD_CONFIG names, or that exists at a default path.

    With ``secrets`` False, placeholders of ``service`` and of the options of sources may stay unfilled.

    Raises:
        ConfigurationError: there is no file, or the file has mistakes. The error contains all mistakes.
    """
    path = find_configuration(explicit, environment, cwd)
    settings = load_settings(path, options_of=connector_class, environment=environment, secrets=secrets)
    return Configuration(path=path, settings=settings, secrets=secrets)


def with_secrets(configuration: Configuration, *, environment: Mapping[str, str]) -> Configuration:
    """Return the configuration with its secrets. If secrets are missing, read the file again.

    Raises:
        ConfigurationError: the file has mistakes, or a secret can't be read.
    """
    if configuration.secrets:
        return configuration
    return read_configuration(configuration.path, environment=environment, cwd=configuration.base)


def chosen_pipelines(configuration: Configuration, names: Sequence[str]) -> list[str]:
    """Return ``names`` without repetitions, or the names of all pipelines if ``names`` is empty.

    Raises:
        PipelineUnknown: the configuration has no pipeline with one of the ``names``.
    """
    known = [pipeline.name for pipeline in configuration.settings.pipelines]
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f" Its pipelines are: {', '.join(known)}."
            raise PipelineUnknown(f"There is no pipeline '{name}' in {configuration.path}.{hint}")
    return list(dict.fromkeys(names)) or known
