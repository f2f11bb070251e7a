"""Execution of a command that changes the state: by the running daemon, or in this process if no daemon runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TypeVar

from ingestd.commands.status import holder
from ingestd.core.errors import MirrorBusy, MirrorError
from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration, with_secrets
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.requests import CheckDrift, Request, Response
from ingestd.daemon.control.server import account
from ingestd.daemon.part_supervisor import mirror_failures_alone
from ingestd.mirror.sqlite import state_exists
from ingestd.process.terminal_text import echo
from ingestd.telemetry import log_event

T = TypeVar("T")

_EXPLAINED_SECONDS = 10.0


async def call_daemon(state: Path, request: Request) -> Response:
    """Send a request to the running daemon. After a long wait, print the reason once, and continue to wait.

    Raises:
        NoDaemon, DaemonEnded, DaemonSilent, RequestRefused: see `call`.
    """
    waiting = asyncio.create_task(call(state, request))
    done, _ = await asyncio.wait({waiting}, timeout=_EXPLAINED_SECONDS)
    if not done:
        echo(
            f"The daemon (process {holder(state)}) has not responded for {_EXPLAINED_SECONDS:.0f} seconds. It is busy, for"
            " example with a reading of the source, or stopped. Ctrl-C ends this command, not the request.",
            err=True,
        )
    return await waiting


def execute(configuration: Configuration, request: Request, kind: type[T]) -> tuple[T, bool]:
    """Execute a request. Return the response, which has the type ``kind``, and whether a daemon executed the request. Blocks.

    Without a daemon, entries that a repair makes pending are delivered before this function returns. The next run or sync
    delivers retried entries. This process logs its events; a daemon logs its own events.

    Raises:
        MirrorError: there is no state file, it can't be used, or a process without a socket (such as a sync) holds it.
        ConfigurationError: no daemon runs, and a required secret can't be read.
        RequestRefused: the daemon can't execute the request.
    """
    response, by_daemon = asyncio.run(_execute(configuration, request))
    if not isinstance(response, kind):
        raise TypeError(f"the response to {request!r} is {response!r}")
    return response, by_daemon


async def _execute(configuration: Configuration, request: Request) -> tuple[Response, bool]:
    state = configuration.settings.state
    try:
        return await call_daemon(state, request), True
    except NoDaemon:
        pass
    if not state_exists(state):
        raise MirrorError(f"there is no state file {state} yet; the first 'ingestd run' or 'ingestd sync' creates it")
    try:
        with mirror_failures_alone():
            async with assemble(with_secrets(configuration, environment=os.environ), emit=log_event) as assembly:
                return await _perform(assembly, request), False
    except MirrorBusy:
        # A daemon may have started in the meantime.
        try:
            return await call_daemon(state, request), True
        except NoDaemon:
            pass
        raise


async def _perform(assembly: Assembly, request: Request) -> Response:
    response = await assembly.command_handler.perform(request, account(os.getuid()))
    if isinstance(request, CheckDrift) and request.mode == "repair" and assembly.mirror.status.pending():
        delivering = asyncio.create_task(assembly.dispatcher.run())
        draining = asyncio.create_task(assembly.dispatcher.drain())
        try:
            await asyncio.wait({delivering, draining}, return_when=asyncio.FIRST_COMPLETED)
            if delivering.done():
                delivering.result()
        finally:
            for task in (draining, delivering):
                task.cancel()
            await asyncio.wait({delivering, draining})
    return response
