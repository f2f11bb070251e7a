"""Limits and environment of a child process that reads untrusted files, and a check whether the process ran out of memory."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

NICE = 10
"""The niceness of the child, so that the work of its parent has priority."""

# The interpreter and the libraries reserve address space that they never touch.
_LIBRARIES_BYTES = 2 * 2**30
# Polars' CPU check generates machine code. The sandbox of the systemd units forbids this, so the units set this variable.
_SKIP_CPU_CHECK = "POLARS_SKIP_CPU_CHECK"
# The messages of Python, and of libraries in Rust, when a process ends because it ran out of memory.
_OUT_OF_MEMORY = (b"memory allocation of", b"capacity overflow", b"OutOfMemory", b"MemoryError")


def limit_process(*, memory_bytes: int, output_bytes: int) -> None:
    """Limit the memory and the files of this process until its end.

    The process then writes no core dump. If the system runs out of memory, the kernel kills this process before others.
    ``memory_bytes``: the limit of private memory. ``output_bytes``: the maximum size of a file that the process writes.
    """
    with contextlib.suppress(OSError):  # a sandbox may refuse this call, and the write below
        os.nice(NICE)
    with contextlib.suppress(OSError):
        # If the whole system runs out of memory, the kernel ends this process and not its parent.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, output_bytes),
        (resource.RLIMIT_DATA, memory_bytes),
    ):
        lower = _permitted(limit, most)
        resource.setrlimit(limit, (lower, lower))


def limit_work(*, memory_bytes: int, file_bytes: int, cpu_seconds: int) -> None:
    """Limit the resources of this process for one file of ``file_bytes``, which its reader may map into memory.

    The next call replaces the limits. SIGXCPU ends a process that uses more than ``cpu_seconds``.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime) + 1 + cpu_seconds
    space = memory_bytes + file_bytes + _LIBRARIES_BYTES
    for limit, most in ((resource.RLIMIT_CPU, cpu), (resource.RLIMIT_AS, space)):
        resource.setrlimit(limit, (_permitted(limit, most), resource.getrlimit(limit)[1]))


def _permitted(limit: int, most: int) -> int:
    """Return ``most``, but at most the hard limit of the process, which can't be raised, such as `LimitAS=` of a unit."""
    hard = resource.getrlimit(limit)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def child_environment(*packages: str | None) -> dict[str, str]:
    """Return an environment without the variables of the parent, and therefore without secrets.

    Only the variable for polars' CPU check is kept. Libraries use one thread, because more threads need more memory.
    ``packages``: the ``__file__`` of each package that the child imports.
    """
    roots = dict.fromkeys(str(Path(package).resolve().parents[1]) for package in packages if package)
    return {
        **{name: value for name, value in os.environ.items() if name == _SKIP_CPU_CHECK},
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(roots),
        "PYTHONDONTWRITEBYTECODE": "1",
        "POLARS_MAX_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }


def reports_no_memory(stderr: bytes) -> bool:
    """Return whether a process that printed ``stderr`` ended because it ran out of memory."""
    return any(words in stderr for words in _OUT_OF_MEMORY)
