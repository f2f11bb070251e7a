"""Reload by `ingestd reload` and SIGHUP: read the configuration file and its secrets again, and apply the differences.

If the configuration has a mistake, or a change that needs a restart, nothing is applied.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.configuration_changes import check_unchangeable, compare
from ingestd.daemon.control.requests import Reloaded
from ingestd.daemon.reconfigurer import Reconfigurer, ReloadImpossible
from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ConfigurationReloaded, ReloadRefused


def read_again(configuration: Configuration) -> Configuration:
    """Read the file of a configuration again, and return the new configuration.

    Raises:
        ConfigurationError: the file has mistakes. The error contains all mistakes.
    """
    return read_configuration(configuration.path, environment=os.environ, cwd=configuration.base)


class Reloader:
    """Reloads one running daemon, one request at a time. All methods belong to the event loop's thread.

    ``read`` reads a configuration again and may block. ``on_begin`` and ``on_end`` are called around each reload.
    ``refusal``: why the last reload changed nothing; empty if the reload was applied, or if there was no reload.
    """

    def __init__(
        self,
        daemon: Reconfigurer,
        *,
        emit: Emit,
        read: Callable[[Configuration], Configuration] = read_again,
    ) -> None:
        self._daemon = daemon
        self._emit = emit
        self._read = read
        self._requests: deque[tuple[str, asyncio.Future[Reloaded]]] = deque()
        self._requested = ChangeSignal()
        self.on_begin: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self.refusal = ""

    async def reload(self, *, by: str) -> Reloaded:
        """Make `run` read the configuration and apply the changes; ``by`` is the requesting account or signal.

        Raises:
            MirrorError: the state file can't be used.
        """
        done: asyncio.Future[Reloaded] = asyncio.get_running_loop().create_future()
        self._requests.append((by, done))
        self._requested.notify()
        return await done

    async def run(self) -> None:
        """Reload at each request, until cancelled.

        Raises:
            MirrorError: the state file can't be used.
        """
        while True:
            known = self._requested.generation
            while self._requests:
                await self._perform(*self._requests.popleft())
            await self._requested.wait_past(known)

    async def _perform(self, by: str, done: asyncio.Future[Reloaded]) -> None:
        self.on_begin()
        try:
            result = await self._reload(by)
        except asyncio.CancelledError:  # the daemon stops
            done.cancel()
            raise
        except Exception as error:
            if not done.done():
                done.set_exception(error)
            self.on_end()
            raise
        if not done.done():
            done.set_result(result)
        self.on_end()

    async def _reload(self, by: str) -> Reloaded:
        running = self._daemon.configuration
        try:
            found = await asyncio.to_thread(self._read, running)
            check_unchangeable(running, found)
            changes = compare(running.settings, found.settings)
            renamed = await self._daemon.apply(found, changes)
        except ConfigurationError as error:
            return self._refuse(by, tuple(str(mistake) for mistake in error.mistakes))
        except ReloadImpossible as error:
            return self._refuse(by, (str(error),))
        retried = self._daemon.retry()
        self.refusal = ""
        former, present = dict(renamed), {after for _, after in renamed}
        reloaded = Reloaded(
            added=tuple(name for name in changes.added if name not in present),
            removed=tuple(name for name in changes.removed if name not in former),
            renamed=renamed,
            restarted=changes.restarted,
            unchanged=len(changes.unchanged),
            service=changes.service,
            api_key=changes.api_key,
            rejected=changes.rejected,
            retried=retried.now,
            waiting={name: time.time() + seconds for name, seconds in retried.later.items()},
        )
        self._emit(
            ConfigurationReloaded(
                by=by,
                added=reloaded.added,
                removed=reloaded.removed,
                renamed=tuple(f"{before} to {after}" for before, after in renamed),
                restarted=reloaded.restarted,
                unchanged=reloaded.unchanged,
                service_changed=reloaded.service,
                key_changed=reloaded.api_key,
                rejected_changed=reloaded.rejected,
            )
        )
        return reloaded

    def _refuse(self, by: str, mistakes: tuple[str, ...]) -> Reloaded:
        self.refusal = f"The former configuration is used, because the last reload was refused: {mistakes[0]}"
        self._emit(ReloadRefused(by=by, mistakes=mistakes))
        return Reloaded(mistakes=mistakes)
