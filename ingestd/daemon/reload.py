"""Reload by `ingestd reload` and SIGHUP: new secrets, a retry of waiting lanes and sources, and a check of the configuration.

Changes of other settings need a restart; the response names them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.control.requests import Reloaded
from ingestd.process.redaction import mask_secrets
from ingestd.sdk import Connector, Resumes
from ingestd.settings.model import Settings
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ConfigurationReloaded, ReloadRefused


class Keyed(Protocol):
    """Sends requests with an API key; implemented by `ingestd.client.service.ServiceClient`."""

    def use_api_key(self, api_key: str) -> bool:
        """Use this key for later requests; return False if it is the current one."""


class LaneRetrier(Protocol):
    """Retries waiting lanes; implemented by `ingestd.delivery.Dispatcher`."""

    def retry_now(self) -> None:
        """Make every waiting lane retry at once."""


def read_again(configuration: Configuration) -> Configuration:
    """Read the file of a configuration again and return its present content.

    Raises:
        ConfigurationError: the file has mistakes; the error contains all of them.
    """
    return read_configuration(configuration.path, environment=os.environ, cwd=configuration.base)


class Reloader:
    """Reloads one running daemon. ``configuration`` is the one that it runs with; ``read`` reads it again and may block."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        client: Keyed,
        dispatcher: LaneRetrier,
        connectors: Collection[Connector],
        emit: Emit,
        read: Callable[[Configuration], Configuration] = read_again,
    ) -> None:
        self._configuration = configuration
        self._client = client
        self._dispatcher = dispatcher
        self._connectors = connectors
        self._emit = emit
        self._read = read
        self._one_at_a_time = asyncio.Lock()

    async def reload(self, *, by: str) -> Reloaded:
        """Read the configuration file and all its secrets again; ``by`` is the requesting account or signal.

        If the file has mistakes, nothing changes, and the result lists all of them.
        """
        async with self._one_at_a_time:
            try:
                found = await asyncio.to_thread(self._read, self._configuration)
            except ConfigurationError as error:
                mistakes = tuple(str(mistake) for mistake in error.mistakes)
                self._emit(ReloadRefused(by=by, mistakes=mistakes))
                return Reloaded(mistakes=mistakes)
            api_key = found.settings.service.api_key.get_secret_value()
            mask_secrets([api_key])
            changed = self._client.use_api_key(api_key)
            restart_for = tuple(differences(self._configuration.settings, found.settings))
            self._emit(ConfigurationReloaded(by=by, key_changed=changed, restart_needed_for=restart_for))
            self._dispatcher.retry_now()
            for connector in self._connectors:
                if isinstance(connector, Resumes):
                    connector.resume()
            return Reloaded(key_changed=changed, restart_for=restart_for)


def differences(running: Settings, found: Settings) -> Iterator[str]:
    """Yield the differences between two configurations, except the API key: a section, or ``pipeline NAME``."""
    service = found.service.model_copy(update={"api_key": running.service.api_key})
    if service != running.service:
        yield "service"
    if found.state != running.state:
        yield "state"
    if found.listen != running.listen:
        yield "listen"
    if found.rejected != running.rejected:
        yield "rejected"
    before = {pipeline.name: pipeline for pipeline in running.pipelines}
    after = {pipeline.name: pipeline for pipeline in found.pipelines}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"pipeline {name}"
