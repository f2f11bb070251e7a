"""The process of one conversion: ``python -m workspaced.resources.cloud_storage.child <order>``.

A file from outside is read by native code here, so this process has limits on memory, time and what it writes, knows no secret
and ends with its parent. It writes ``result.json`` into its folder; a crash is told by its absence.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import cast

import msgspec

from ingestd.process.child_limits import limit_process, limit_work
from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Convert

RESULT = "result.json"
_PR_SET_PDEATHSIG = 1


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done. Paths are absolute; ``module`` is one of the registry's."""

    module: str
    source: str
    into: str
    memory_bytes: int
    cpu_seconds: int
    output_bytes: int
    parent: int


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was made; ``file`` is its name in the folder."""

    name: str
    content_type: str
    file: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it: files, or why there are none."""

    made: list[Made] = []
    error_class: str = ""
    sentence: str = ""


def main(order: Order) -> None:
    """Do it, and write down what became of it."""
    _limit(order)
    result = _result(order)
    target = Path(order.into, f"{RESULT}.new")
    target.write_bytes(msgspec.json.encode(result))
    target.replace(Path(order.into, RESULT))


def _result(order: Order) -> Result:
    try:
        module = importlib.import_module(f"workspaced.resources.cloud_storage.converters.{order.module}")
        made = cast("Convert", module.convert)(Path(order.source), Path(order.into))
    except BaseException as error:  # noqa: BLE001  what a library throws at this file, its panics too, is told by the parent
        error_class, sentence = _judged(error, order)
        return Result(error_class=error_class, sentence=sentence)
    return Result(made=[Made(name=one.name, content_type=one.content_type, file=one.path.name) for one in made])


def _judged(error: BaseException, order: Order) -> tuple[str, str]:
    """The class, and a sentence for who uploaded the file."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EFBIG or f"os error {errno.EFBIG}" in str(error):  # the latter is how Rust says it
        return "unsupported", _too_much_made(order)
    if isinstance(error, ConversionRefused):
        return error.error_class, str(error)
    if isinstance(error, MemoryError):
        return "unsupported", too_much_memory(order.memory_bytes)
    return "internal", f"The conversion failed ({type(error).__name__}: {str(error)[:500]})."


def _too_much_made(order: Order) -> str:
    return f"What is made of the file has more than {order.output_bytes} bytes."


def too_much_memory(memory_bytes: int) -> str:
    """The sentence for a file that needs more than it may."""
    return f"To convert the file takes more than {memory_bytes >> 20} MiB of memory."


def _limit(order: Order) -> None:
    """From here on the process is harmless, as far as resources go."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order.parent:  # the parent ended before we asked to be told
        raise SystemExit(1)
    limit_process(memory_bytes=order.memory_bytes, output_bytes=order.output_bytes)
    size = Path(order.source).stat().st_size
    limit_work(memory_bytes=order.memory_bytes, file_bytes=size, cpu_seconds=order.cpu_seconds)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Order))
