"""The parent's side of one conversion: starts the process, bounds its time, judges how it ended."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

import ingestd
import workspaced
from ingestd.process.child_limits import child_environment, reports_no_memory
from workspaced.resources.cloud_storage.child import RESULT, Made, Order, Result, too_much_memory
from workspaced.resources.cloud_storage.conversion_rules import ErrorClass
from workspaced.resources.cloud_storage.converters.registry import Kind
from workspaced.settings.workers import ConversionSettings

_PLACED: Final = re.compile(r"[0-9]{1,4}", re.ASCII)
_RESULT_BYTES: Final = 1_048_576
_COMPLAINT_BYTES: Final = 65_536
_CLASSES: Final = frozenset({"user", "unsupported", "internal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """It made these files, in the folder."""

    made: tuple[Made, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It made nothing; ``sentence`` is for who uploaded the file."""

    error_class: ErrorClass
    sentence: str


async def run(kind: Kind, source: Path, ending: str, folder: Path, *, pace: ConversionSettings) -> Done | Failed:
    """Convert ``source``, whose name does not tell what it is, in an empty folder.

    Cancelled, it kills the process first.
    """
    named, into = await asyncio.to_thread(_laid_out, source, ending, folder)
    order = Order(
        module=kind.module,
        source=str(named),
        into=str(into),
        memory_bytes=pace.memory_bytes,
        cpu_seconds=pace.cpu_seconds,
        output_bytes=pace.output_bytes,
        parent=os.getpid(),
    )
    complaints = folder / "stderr"
    with complaints.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "workspaced.resources.cloud_storage.child",
            msgspec.json.encode(order).decode(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=said,
            cwd=into,
            env=child_environment(workspaced.__file__, ingestd.__file__),
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(pace.seconds):
            code = await process.wait()
    except TimeoutError:
        return Failed(error_class="timeout", sentence=f"The conversion took more than {pace.seconds:g} seconds.")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(asyncio.ensure_future(process.wait()))
    return await asyncio.to_thread(_judge, code, into, complaints, pace)


def _laid_out(source: Path, ending: str, folder: Path) -> tuple[Path, Path]:
    """The source under a name with its ending, and a folder for what is made.

    Both are absolute, since the child works in the folder and the data's own may have been given relative to ours.
    """
    folder = folder.absolute()
    named = folder / f"source{ending}"
    named.symlink_to(source.resolve())
    into = folder / "made"
    into.mkdir()
    return named, into


def _judge(code: int, into: Path, complaints: Path, pace: ConversionSettings) -> Done | Failed:
    result = _read_result(into)
    if result is None or code != 0:
        return _crashed(code, complaints, pace)
    if result.error_class:
        error_class = result.error_class if result.error_class in _CLASSES else "internal"
        return Failed(error_class=error_class, sentence=result.sentence)  # type: ignore[arg-type]  # judged above
    total = 0
    for one in result.made:
        path = into / one.file
        if not _PLACED.fullmatch(one.file) or not stat.S_ISREG(path.lstat().st_mode):
            return Failed(error_class="internal", sentence="The conversion made something that is no file.")
        total += path.stat().st_size
    if total > pace.output_bytes:
        sentence = f"What is made of the file has more than {pace.output_bytes} bytes."
        return Failed(error_class="unsupported", sentence=sentence)
    return Done(made=tuple(result.made))


def _read_result(into: Path) -> Result | None:
    try:
        with (into / RESULT).open("rb") as file:
            return msgspec.json.decode(file.read(_RESULT_BYTES), type=Result)
    except (OSError, msgspec.DecodeError):
        return None


def _crashed(code: int, complaints: Path, pace: ConversionSettings) -> Failed:
    with complaints.open("rb") as file:
        said = file.read(_COMPLAINT_BYTES)
    if reports_no_memory(said):
        return Failed(error_class="unsupported", sentence=too_much_memory(pace.memory_bytes))
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        # the limit on processor time ends with the one or the other; so does a system that is out of memory
        return Failed(
            error_class="timeout",
            sentence=f"The conversion was ended by the system: it took {pace.cpu_seconds} seconds of processor time, "
            "or memory ran out.",
        )
    if code < 0:
        # A library that finds no memory, aborts, as does one that a file breaks; the same file would do it again.
        return Failed(
            error_class="unsupported",
            sentence=f"The program that reads such files crashed on this one ({signal.Signals(-code).name}), as it does when "
            f"it needs more than {pace.memory_bytes >> 20} MiB of memory or when the file is made to break it.",
        )
    return Failed(error_class="internal", sentence=f"The conversion ended without a result (code {code}).")
