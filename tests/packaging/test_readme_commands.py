"""The first pipeline of the README: its configuration and its commands, pasted as one block, with a free port."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BINARIES = Path(sys.executable).parent


def blocks() -> tuple[str, str]:
    """Return the configuration and the commands below "Your first own pipeline"."""
    part = README.read_text().partition("## Your first own pipeline")[2].partition("\n## ")[0]
    (configuration,) = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
    (commands,) = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
    return configuration, commands


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing: install Debian's package curl")
def test_the_commands_work_when_they_are_pasted_as_one_block(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    configuration, commands = (text.replace("8400", port) for text in blocks())
    # The admin port is the next one, which may be in use.
    commands = commands.replace("workspaced serve", f"workspaced serve --admin-port 0 --port {port}")
    commands = commands.replace(". .venv/bin/activate", f"PATH={BINARIES}:$PATH")
    (tmp_path / "ingestd.yaml").write_text(configuration)
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "run.csv").write_text("part_number,mass_kg\n00417,0.10\n01523,2\n")
    with subprocess.Popen(
        ["/bin/bash", "-e"],
        cwd=tmp_path, env={**os.environ, "NO_PROXY": "*"}, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as shell:  # fmt: skip
        try:
            # The service is a child of the shell; the block ends with it.
            output, _ = shell.communicate(f"{commands}\nkill %1\nwait %1 || true\n", timeout=100)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, output
    assert "2 entries delivered, 0 pending, 0 rejected." in output
    assert "00417.mass = 0.10" in output
    assert "Nothing is rejected." in output
    assert "run.csv was read" in output
    assert "2 entries, as delivered" in output
    assert not re.search(r"Traceback|refused|mistake", output.replace("has no mistake", "")), output
