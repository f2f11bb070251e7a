"""A daemon as a child process: started, waited for until it says that it is ready, listened to, ended."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from ingestd.core.errors import IngestdError

READY_SECONDS = 60.0
STOP_SECONDS = 15.0
_LINES_KEPT = 15


class DemoFailed(IngestdError):
    """The demo can't go on; the sentence says why and what to do."""


@contextlib.asynccontextmanager
async def running(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    listen: Callable[[str], None],
) -> AsyncIterator[None]:
    """``python -m`` with ``arguments`` while the context is open; entered once the child has reported that it is ready.

    ``listen`` is called with each line that the child writes. On leaving, the child is asked to drain, and waited for.

    Raises:
        DemoFailed: the child ended before it was ready, or takes too long; with its last lines.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
        # An abstract address (the NUL): no file to clean up, and no limit that a long temporary folder could exceed.
        name = f"ingestd-demo-{secrets.token_hex(8)}"
        reports.bind(f"\0{name}")
        reports.setblocking(False)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *arguments,
            env={**environment, "NOTIFY_SOCKET": f"@{name}"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C is for the demo, which then ends its children in order.
            start_new_session=True,
        )
        last: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)
        listening = asyncio.create_task(_listen(child, last, listen))
        try:
            await _ready(arguments[0], child, reports, last, listening)
            yield
        finally:
            await _end(child)
            await listening


async def output_of(arguments: Sequence[str], *, environment: Mapping[str, str]) -> str:
    """What ``python -m`` with ``arguments`` writes to its standard output.

    Raises:
        DemoFailed: it failed; with what it wrote.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *arguments,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await child.communicate()
    if child.returncode != 0:
        raise DemoFailed(_sentence(arguments[0], child.returncode, errors.decode(errors="replace").splitlines()))
    return out.decode().strip()


async def _ready(
    name: str,
    child: asyncio.subprocess.Process,
    reports: socket.socket,
    last: Sequence[str],
    listening: asyncio.Task[None],
) -> None:
    hearing = asyncio.create_task(_hear_ready(reports))
    ending = asyncio.create_task(child.wait())
    try:
        await asyncio.wait([hearing, ending], timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            return
        if ending.done():
            await listening
            raise DemoFailed(_sentence(name, child.returncode, list(last)))
        raise DemoFailed(f"{name} was not ready within {READY_SECONDS:.0f} s. Its last lines:\n" + "\n".join(last))
    finally:
        hearing.cancel()
        ending.cancel()


async def _hear_ready(reports: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while b"READY=1" not in (await loop.sock_recv(reports, 65_536)).split(b"\n"):
        pass


async def _listen(
    child: asyncio.subprocess.Process, last: collections.deque[str], listen: Callable[[str], None]
) -> None:
    if child.stdout is None:
        raise AssertionError("the child was started with a pipe")
    async for raw in child.stdout:
        line = raw.decode(errors="replace").rstrip()
        last.append(line)
        listen(line)


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await child.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


def _sentence(name: str, code: int | None, lines: Sequence[str]) -> str:
    if any("ModuleNotFoundError" in line or "No module named" in line for line in lines):
        hint = "A package is missing; install ingestd with its extra 'workspaced' (pip install 'ingestd[workspaced]')."
    else:
        hint = "Its last lines:"
    return "\n".join([f"{name} ended with exit code {code} before it was ready. {hint}", *lines[-_LINES_KEPT:]])


def environment_for_children() -> dict[str, str]:
    """Ours, without what a service manager or a user's own configuration would tell a daemon."""
    ours = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INGESTD_CONFIG")
    return {name: value for name, value in os.environ.items() if name not in ours}
