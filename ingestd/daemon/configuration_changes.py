"""Comparison of two configurations: pipelines that a reload has to add, remove, restart and rename."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

import msgspec

from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.daemon.configuration import Configuration
from ingestd.settings.model import PipelineSettings, Settings

_RELOADED = frozenset({"service", "rejected", "pipelines", "log"})
"""The keys of a configuration that can change while the daemon runs. Only commands use `log`, not the daemon."""


class ConfigurationChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The names of pipelines by their kind of change, in the order of the configuration.

    ``service`` and ``rejected``: whether settings below these keys changed. ``api_key``: whether the API key changed.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    restarted: tuple[str, ...]
    unchanged: tuple[str, ...]
    service: bool
    api_key: bool
    rejected: bool

    @property
    def ended(self) -> tuple[str, ...]:
        """The running pipelines that end."""
        return (*self.removed, *self.restarted)

    @property
    def started(self) -> tuple[str, ...]:
        """The pipelines that start."""
        return (*self.added, *self.restarted)


def compare(running: Settings, found: Settings, *, restart: Iterable[str] = ()) -> ConfigurationChanges:
    """Compare the settings in use with the new settings. ``restart``: pipelines that restart even if unchanged."""
    before = {pipeline.name: pipeline for pipeline in running.pipelines}
    after = {pipeline.name: pipeline for pipeline in found.pipelines}
    changed = {name for name, pipeline in after.items() if name in before and before[name] != pipeline}
    changed.update(restart)
    # A pipeline that has read nothing yet restarts to take over the state of a removed pipeline with equal source and sink.
    removed_sources = {digest for name, digest in source_digests(running.pipelines).items() if name not in after}
    changed.update(name for name, digest in source_digests(found.pipelines).items() if digest in removed_sources)
    key = running.service.api_key != found.service.api_key
    return ConfigurationChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        restarted=tuple(name for name in after if name in before and name in changed),
        unchanged=tuple(name for name in after if name in before and name not in changed),
        service=running.service != found.service,
        api_key=key,
        rejected=running.rejected != found.rejected,
    )


def check_unchangeable(running: Configuration, found: Configuration) -> None:
    """Check that only keys that a reload can apply have changed.

    Raises:
        ConfigurationError: other keys have changed; the error names these keys.
    """
    mistakes = tuple(
        Mistake(
            file=str(found.path),
            line=0,
            column=0,
            key=key,
            sentence="This setting can't change while the daemon runs. Restart the daemon to use the new value, or restore the "
            "former value and reload again.",
        )
        for key in Settings.model_fields
        if key not in _RELOADED and getattr(running.settings, key) != getattr(found.settings, key)
    )
    if mistakes:
        raise ConfigurationError(mistakes)


def source_digests(pipelines: Iterable[PipelineSettings]) -> Mapping[str, str]:
    """Return, by pipeline, the SHA-256 of the connector's name, its options without secrets, and the sink."""
    return {pipeline.name: _digest(pipeline) for pipeline in pipelines}


def _digest(pipeline: PipelineSettings) -> str:
    source, sink = pipeline.source, pipeline.sink
    # Secrets are dumped as asterisks, so a rotated password does not change the digest.
    options = source.options.model_dump(mode="json")
    text = json.dumps([source.connector, options, sink.workspace, sink.by, sink.name], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
