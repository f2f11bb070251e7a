"""The parent's side of a conversion: start the process, limit its time, classify its outcome."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

import ingestd
import workspaced
from ingestd.process.child_limits import child_environment, reports_no_memory
from workspaced.resources.cloud_storage.child import (
    RESULT,
    Order,
    Result,
    too_large_outputs,
    too_much_memory,
)
from workspaced.resources.cloud_storage.converters.registry import Converter
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.blobs.file_threads import acquired

_OUTPUT_NAME: Final = re.compile(r"[0-9]{1,4}", re.ASCII)
_RESULT_BYTES: Final = 1_048_576
_STDERR_BYTES: Final = 65_536


async def run(converter: Converter, source: Path, ending: str, folder: Path, *, settings: ConversionSettings) -> Result:
    """Convert ``source`` in the empty ``folder``, under a name with ``ending``. A cancellation kills the process."""
    stderr_path = folder / "stderr"
    preparing = asyncio.ensure_future(asyncio.to_thread(_prepare_folder, source, ending, folder, stderr_path))
    named, into, stderr = await acquired(preparing, lambda prepared: prepared[2].close())
    order = Order(
        module=converter.module,
        source=str(named),
        into=str(into),
        memory_bytes=settings.memory_bytes,
        cpu_seconds=settings.cpu_seconds,
        output_bytes=settings.output_bytes,
        parent=os.getpid(),
    )
    with stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "workspaced.resources.cloud_storage.child",
            msgspec.json.encode(order).decode(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=stderr,
            cwd=into,
            env=child_environment(workspaced.__file__, ingestd.__file__),
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(settings.seconds):
            code = await process.wait()
    except TimeoutError:
        return Result(error_class="timeout", sentence=f"The conversion took more than {settings.seconds:g} seconds.")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(asyncio.ensure_future(process.wait()))
    return await asyncio.to_thread(_outcome, code, into, stderr_path, settings)


def _prepare_folder(source: Path, ending: str, folder: Path, stderr_path: Path) -> tuple[Path, Path, BinaryIO]:
    """Return a symbolic link to the source, with the ending, a folder for outputs, and the open file for errors.

    The paths are absolute, because the child has another working directory and the data folder may be a relative path.
    """
    folder = folder.absolute()
    named = folder / f"source{ending}"
    named.symlink_to(source.resolve())
    into = folder / "made"
    into.mkdir()
    return named, into, stderr_path.open("wb")


def _outcome(code: int, into: Path, stderr_path: Path, settings: ConversionSettings) -> Result:
    result = _read_result(into)
    if result is None or code != 0:
        return _crashed(code, stderr_path, settings)
    if result.error_class:
        return result
    total = 0
    for one in result.outputs:
        path = into / one.file
        if not _OUTPUT_NAME.fullmatch(one.file) or not stat.S_ISREG(path.lstat().st_mode):
            return Result(error_class="internal", sentence="The conversion made an output that is not a file.")
        total += path.stat().st_size
    if total > settings.output_bytes:
        return Result(error_class="unsupported", sentence=too_large_outputs(settings.output_bytes))
    return result


def _read_result(into: Path) -> Result | None:
    try:
        with (into / RESULT).open("rb") as file:
            return msgspec.json.decode(file.read(_RESULT_BYTES), type=Result)
    except (OSError, msgspec.DecodeError):
        return None


def _crashed(code: int, stderr_path: Path, settings: ConversionSettings) -> Result:
    with stderr_path.open("rb") as file:
        text = file.read(_STDERR_BYTES)
    if reports_no_memory(text):
        return Result(error_class="unsupported", sentence=too_much_memory(settings.memory_bytes))
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        # The limit of processor time sends one of these signals; a system without free memory sends SIGKILL.
        return Result(
            error_class="timeout",
            sentence=f"The system ended the conversion: it used {settings.cpu_seconds} seconds of processor time, "
            "or memory ran out.",
        )
    if code < 0:
        # A library aborts if memory runs out, or if the file is malformed. Another attempt would end in the same way.
        return Result(
            error_class="unsupported",
            sentence=f"The converter crashed ({signal.Signals(-code).name}). It does so if it needs more than "
            f"{settings.memory_bytes >> 20} MiB of memory, or if the file is malformed.",
        )
    return Result(error_class="internal", sentence=f"The conversion ended without a result (code {code}).")
