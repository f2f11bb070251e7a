"""A command that changes something: done by the daemon that holds the state file, or here where none runs."""

from __future__ import annotations

import asyncio
import os

from ingestd.core.errors import MirrorBusy, MirrorError
from ingestd.daemon.assembly import Assembly, assembled
from ingestd.daemon.configuration import Configuration, with_secrets
from ingestd.daemon.control.caller import NobodyListens, call
from ingestd.daemon.control.requests import Answer, CheckDrift, Request
from ingestd.daemon.control.server import account
from ingestd.daemon.failures import mirror_failures_alone
from ingestd.mirror.sqlite import state_exists
from ingestd.telemetry import Emit


async def ask(configuration: Configuration, request: Request, *, emit: Emit) -> tuple[Answer, bool]:
    """Have it done; the answer, and whether a daemon did it.

    Where none runs, what a repair makes pending is delivered before this returns; what was put back is left to the next run
    or sync. ``emit`` is told what happens here; a daemon tells its own log.

    Raises:
        MirrorError: there is no state file, it can't be used, or a process without a socket (a sync, say) holds it.
        ConfigurationError: no daemon runs, and a secret that is needed here can't be read.
        Refused: the daemon can't do it.
    """
    state = configuration.settings.state
    try:
        return await call(state, request), True
    except NobodyListens:
        pass
    if not state_exists(state):
        raise MirrorError(
            f"there is no state file {state} yet; it is made by the first 'ingestd run' or 'ingestd sync'"
        )
    try:
        with mirror_failures_alone():
            async with assembled(with_secrets(configuration, environment=os.environ), emit=emit) as assembly:
                return await _perform(assembly, request), False
    except MirrorBusy:
        # A daemon may have started in this very moment.
        try:
            return await call(state, request), True
        except NobodyListens:
            pass
        raise


async def _perform(assembly: Assembly, request: Request) -> Answer:
    answer = await assembly.performer.perform(request, account(os.getuid()))
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
    return answer
