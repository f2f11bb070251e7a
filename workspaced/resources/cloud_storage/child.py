"""The process of one conversion: ``python -m workspaced.resources.cloud_storage.child <order>``.

Native code reads an untrusted file here. So this process has limits for memory, time and the size of files. It has no
secret, and ends with its parent. It writes ``result.json`` to its folder. Without this file, the process has crashed.
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
from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Convert, ErrorClass

RESULT = "result.json"
_PR_SET_PDEATHSIG = 1
_OF_PREVIEWS = ("PIL", "pypdfium2")
MISSING_PREVIEWS = (
    "The service was installed without previews of images and PDF files. "
    "Install the extra 'previews', such as pip install 'workspaced[previews]', and convert the file again."
)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The task of the process. Paths are absolute; ``module`` is a converter of the registry."""

    module: str
    source: str
    into: str
    memory_bytes: int
    cpu_seconds: int
    output_bytes: int
    parent: int


class OutputFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the converter made. ``name``: the name for users. ``file``: the file name in the folder."""

    name: str
    content_type: str
    file: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome: files, or the class of an error and a sentence for the user who uploaded the file."""

    outputs: list[OutputFile] = []
    error_class: ErrorClass | None = None
    sentence: str = ""


def main(order: Order) -> None:
    """Convert the file, and write the result."""
    _limit(order)
    result = _result(order)
    target = Path(order.into, f"{RESULT}.new")
    target.write_bytes(msgspec.json.encode(result))
    target.replace(Path(order.into, RESULT))


def _result(order: Order) -> Result:
    try:
        module = importlib.import_module(f"workspaced.resources.cloud_storage.converters.{order.module}")
        produced = cast("Convert", module.convert)(Path(order.source), Path(order.into))
    except BaseException as error:  # noqa: BLE001  the parent reports every exception of a library, also panics
        error_class, sentence = _classify(error, order)
        return Result(error_class=error_class, sentence=sentence)
    return Result(
        outputs=[OutputFile(name=one.name, content_type=one.content_type, file=one.path.name) for one in produced]
    )


def _classify(error: BaseException, order: Order) -> tuple[ErrorClass, str]:
    """Return the class of an error, and a sentence for the user who uploaded the file."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EFBIG or f"os error {errno.EFBIG}" in str(error):  # the text of an error from Rust code
        return "unsupported", too_large_outputs(order.output_bytes)
    if isinstance(error, ConversionRefused):
        return error.error_class, str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in _OF_PREVIEWS:
        return "unsupported", MISSING_PREVIEWS
    if isinstance(error, MemoryError):
        return "unsupported", too_much_memory(order.memory_bytes)
    return "internal", f"The conversion failed ({type(error).__name__}: {str(error)[:500]})."


def too_large_outputs(output_bytes: int) -> str:
    """Return the sentence for a file with outputs that are too large."""
    return f"The outputs of the conversion have more than {output_bytes} bytes."


def too_much_memory(memory_bytes: int) -> str:
    """Return the sentence for a file that needs too much memory to be converted."""
    return f"The conversion of the file needs more than {memory_bytes >> 20} MiB of memory."


def _limit(order: Order) -> None:
    """Set the limits of this process, and have the system kill it when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order.parent:  # the parent ended before the call above
        raise SystemExit(1)
    limit_process(memory_bytes=order.memory_bytes, output_bytes=order.output_bytes)
    size = Path(order.source).stat().st_size
    limit_work(memory_bytes=order.memory_bytes, file_bytes=size, cpu_seconds=order.cpu_seconds)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Order))
