"""Temporary files of connectors."""

from __future__ import annotations

import subprocess
import sys


def test_a_temporary_file_never_stores_a_part_of_a_write_without_an_error() -> None:
    script = (
        "import resource\n"
        "from connectors.filesystem import temporary_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "with temporary_file() as file:\n"
        "    file.write(bytes(150_000))\n"
        "    file.seek(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
