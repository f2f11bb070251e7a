"""A documentation page, executed as a reader would: its configurations are saved, then its commands run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

DEADLINE_SECONDS = 100


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page that are marked with ``language``."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def shown_lines(page: str) -> list[str]:
    """Return the lines of output that a page shows."""
    return [line for block in blocks(page, "text") for line in block.splitlines()]


def run_page(page: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Save each configuration under the name in its first line, run the commands in order, and return their output.

    A configuration with ``, continued`` after the name is appended to the earlier configuration of this name.
    Background processes of the commands end with the commands.

    Raises:
        AssertionError: a command failed.
    """
    for configuration in blocks(page, "yaml"):
        name, _, continued = configuration.partition("\n")[0].removeprefix("# ").partition(", ")
        with (folder / name).open("a" if continued else "w", encoding="utf-8") as file:
            file.write(configuration)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["/bin/bash", "-euo", "pipefail"],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", **environment, "PATH": path},
        text=True,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as shell:
        try:
            commands = "\n".join(blocks(page, "sh"))
            output, _ = shell.communicate(
                f"{commands}\nkill $(jobs -p) 2>/dev/null && wait || true\n", DEADLINE_SECONDS
            )
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, output
    return output
