"""Child processes of the demo: start, readiness, output and end."""

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
    """The demo can't continue; the sentence says why and what to do."""


@contextlib.asynccontextmanager
async def running(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    listen: Callable[[str], None],
) -> AsyncIterator[None]:
    """Run ``python -m`` with ``arguments`` while the context is open. The context is entered when the child is ready.

    ``listen`` receives each line of the child's output. On exit, the child gets SIGTERM, and the context waits for its end.

    Raises:
        DemoFailed: the child ended before it was ready, or was not ready in time. The error contains the child's last lines.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
        # An abstract address (NUL) leaves no file, and a long temporary folder can't exceed the path limit.
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
            # Only the demo gets Ctrl-C; it then stops its children.
            start_new_session=True,
        )
        last: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)
        listening = asyncio.create_task(_listen(child, last, listen))
        is_ready = asyncio.Event()
        receiving = asyncio.create_task(_receive(reports, is_ready))
        try:
            await _wait_until_ready(arguments[0], child, is_ready, last, listening)
            yield
        finally:
            await _end(child)
            await listening
            receiving.cancel()
            await asyncio.wait([receiving])


async def output_of(arguments: Sequence[str], *, environment: Mapping[str, str]) -> str:
    """Return the standard output of ``python -m`` with ``arguments``.

    Raises:
        DemoFailed: the command failed. The error contains the command's last lines.
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


async def _wait_until_ready(
    name: str,
    child: asyncio.subprocess.Process,
    is_ready: asyncio.Event,
    last: Sequence[str],
    listening: asyncio.Task[None],
) -> None:
    reporting = asyncio.create_task(is_ready.wait())
    ending = asyncio.create_task(child.wait())
    try:
        await asyncio.wait([reporting, ending], timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if reporting.done():
            return
        if ending.done():
            await listening
            raise DemoFailed(_sentence(name, child.returncode, list(last)))
        raise DemoFailed(f"{name} was not ready within {READY_SECONDS:.0f} s. Its last lines:\n" + "\n".join(last))
    finally:
        reporting.cancel()
        ending.cancel()


async def _receive(reports: socket.socket, is_ready: asyncio.Event) -> None:
    """Receive reports until cancelled, also after READY: the kernel queues few of them, and then the child can send no more."""
    loop = asyncio.get_running_loop()
    while True:
        if b"READY=1" in (await loop.sock_recv(reports, 65_536)).split(b"\n"):
            is_ready.set()


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
    """Return this process's environment without the variables of the service manager and of the user's configuration."""
    excluded = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INGESTD_CONFIG")
    return {name: value for name, value in os.environ.items() if name not in excluded}
