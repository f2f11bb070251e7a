"""The heaps of the C library in a real process with threads."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from ingestd.commands.loop import share_heap

if "share" in sys.argv:
    assert share_heap()
kept, together = [], threading.Barrier(4)

def work():
    together.wait()  # all threads exist at once
    kept.append([bytearray(2_000) for _ in range(1_000)])
    together.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stream)
libc.fflush(stream)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has heaps of threads")
@pytest.mark.parametrize("share", [True, False])
def test_threads_share_one_heap(*, share: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, *(["share"] if share else [])]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    heaps = found.count("<heap nr=")
    assert heaps == 1 if share else heaps > 1, found
