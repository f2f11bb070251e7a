"""Flame graphs of the processes that a benchmark measures, recorded by py-spy."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

MISSING = "py-spy is not installed. Run `make dev`, or install the package py-spy in the environment of this Python."
_RATE = 200
"""Samples a second. Each sample pauses the process, so the figures of a recorded round are no results."""


class NotRecorded(Exception):
    """A flame graph could not be recorded; the message says why and what to do."""


@dataclass(slots=True)
class Recording:
    """The recording of a benchmark. ``made``: the files of its flame graphs, in the order in which the processes started."""

    folder: Path
    benchmark: str
    made: list[Path] = field(default_factory=list)


_RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextlib.contextmanager
def recording(folder: Path, benchmark: str) -> Iterator[Recording]:
    """Record each measured process until the context ends, in its own file in ``folder``.

    Raises:
        NotRecorded: py-spy is not installed.
    """
    _program()
    folder.mkdir(parents=True, exist_ok=True)
    found = Recording(folder, benchmark)
    token = _RECORDING.set(found)
    try:
        yield found
    finally:
        _RECORDING.reset(token)


@contextlib.contextmanager
def recorded(pid: int, name: str) -> Iterator[None]:
    """Record a measured process until the context ends, if a `recording` is active. ``name`` is part of the file's name.

    Raises:
        NotRecorded: py-spy could not read the process.
    """
    found = _RECORDING.get()
    if found is None:
        yield
        return
    picture = found.folder / f"{found.benchmark}-{len(found.made) + 1}-{name.replace(' ', '-')}.svg"
    found.made.append(picture)
    # py-spy writes its command into the title. So the file is given without a path, and cwd is its folder.
    command = [
        "py-spy",
        "record",
        "--pid",
        str(pid),
        "--output",
        picture.name,
        "--rate",
        str(_RATE),
        "--function",
        "--threads",
    ]
    with subprocess.Popen(
        command, executable=_program(), cwd=found.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said = [_until_sampling(process)]
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)  # without effect if the measured process, and so py-spy, has ended
            said.append(process.communicate()[0])
    if process.returncode != 0 or not picture.exists():
        raise NotRecorded(f"py-spy could not record {name}: {''.join(said).strip()[-500:]}")


def _until_sampling(process: subprocess.Popen[str]) -> str:
    """Wait until py-spy takes samples or ends; return what it has printed so far."""
    said = ""
    for line in process.stdout or ():
        said += line
        if "Sampling process" in line:
            break
    return said


def _program() -> str:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("py-spy", path=beside)
    if found is None:
        raise NotRecorded(MISSING)
    return found
