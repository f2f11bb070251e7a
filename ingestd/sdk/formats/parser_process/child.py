"""The child process: ``python -m ingestd.sdk.formats.parser_process.child CHANNEL LIFE LIMITS``.

It parses one file at a time. The file is not trusted, and native code reads it. So this process has limits on memory and time,
no secret in its environment, and ends when its parent ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from ingestd.sdk import SourceBroken, limit_process, limit_work
from ingestd.sdk.formats.parser_process.messages import (
    Accepted,
    Broken,
    ConnectionEnded,
    Crashed,
    DiskFailed,
    FinalMessage,
    ParseOrder,
    ParserLimits,
    ParsingEnded,
    receive_order,
    send,
    send_chunk,
)

_OUTPUT_BYTES = 2**20
# If a process keeps more memory than this after a file, a new process replaces it, so that the next file has the whole limit.
_KEPT_BYTES = 512 * 2**20
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def main(channel_number: int, lifeline: int, limits: ParserLimits) -> None:
    """Serve orders until the parent closes the channel."""
    _end_with_parent(lifeline)
    limit_process(memory_bytes=limits.memory_bytes, output_bytes=_OUTPUT_BYTES)
    with socket.socket(fileno=channel_number) as channel, contextlib.suppress(ConnectionEnded, ConnectionError):
        while True:
            order, descriptor = receive_order(channel)
            with os.fdopen(descriptor, "rb") as file:
                limit_work(
                    memory_bytes=limits.memory_bytes,
                    file_bytes=os.fstat(descriptor).st_size,
                    cpu_seconds=limits.cpu_seconds,
                )
                send(channel, Accepted())
                last = _parse(channel, order, cast("BinaryIO", file))
            send(channel, last)
            if not (isinstance(last, ParsingEnded | Broken) and last.reusable):
                return


def _end_with_parent(lifeline: int) -> None:
    """Have the kernel end this process when the parent's end of the pipe closes.

    PR_SET_PDEATHSIG is not used: it ends the child when the thread that started the child ends, which may be long before the
    parent ends. The kernel sends SIGIO, which by default ends a process, also while native code runs.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(lifeline, 1)
    except BlockingIOError:
        return
    raise SystemExit(1)  # the parent ended before the signal was set up


def _parse(channel: socket.socket, order: ParseOrder, file: BinaryIO) -> FinalMessage:
    """Parse a file and send every chunk. Return the final message about the file."""
    try:
        sys.path += [path for path in order.paths if path not in sys.path]  # the format may be of another package
        kind: Any = getattr(importlib.import_module(order.module), order.format)
        file.seek(0)
        for chunk in kind.model_validate_json(bytes(order.settings)).parse(file, order.file):
            send_chunk(channel, chunk)
    except (ConnectionEnded, ConnectionError):
        raise
    except SourceBroken as error:
        return Broken(sentence=str(error), reusable=_is_reusable())
    except OSError as error:
        if error.errno is not None:
            return DiskFailed(number=error.errno)
        return _crashed(error)
    except BaseException as error:  # noqa: BLE001 - a panic of native code is no Exception
        return _crashed(error)
    return ParsingEnded(reusable=_is_reusable())


def _crashed(error: BaseException) -> Crashed:
    text = " ".join(str(error).split())
    return Crashed(
        error=f"{type(error).__name__}: {text}"[:500],
        no_memory=isinstance(error, MemoryError) or "capacity overflow" in text,
    )


def _is_reusable() -> bool:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages[5]) * _PAGE_BYTES < _KEPT_BYTES  # the sixth number is data and stack


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=ParserLimits))
