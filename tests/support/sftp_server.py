"""An OpenSSH server on a free port, for the user who runs the tests, with its files in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/{key}
AuthorizedKeysFile {folder}/user.pub
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
StrictModes no
UsePAM no
UseDNS no
PidFile none
LogLevel INFO
Subsystem sftp internal-sftp
"""


def _sshd() -> str:
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip("this machine has no OpenSSH server (Debian's package openssh-server)")
    return found


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


class SftpServer:
    """A process ``sshd`` with new keys. ``known_hosts``: a file with its first host key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True)
        self.port = free_port()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.key_file = folder / "user"
        self.known_hosts = folder / "known_hosts"
        for name in ("host", "other-host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        key = (folder / "host.pub").read_text().split()[:2]
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {' '.join(key)}\n")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd needs this folder for privilege separation
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self, key: str = "host") -> None:
        """Start the server with a host key, and wait until it listens."""
        config = self.folder / "sshd_config"
        config.write_text(_CONFIG.format(port=self.port, folder=self.folder, key=key))
        self._process = subprocess.Popen([_sshd(), "-D", "-e", "-f", config], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        seen = []
        for line in self._process.stderr:
            seen.append(line)
            if "Server listening" in line:
                return
        raise AssertionError("".join(seen))

    def stop(self) -> None:
        """Stop the server and its connections."""
        if self._process is not None:
            server = psutil.Process(self._process.pid)
            for process in [server, *server.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):  # some processes end when their parent is killed
                    process.kill()
            self._process.wait()
            assert self._process.stderr is not None
            self._process.stderr.close()
            self._process = None

    def options(self, folder: str, **more: Any) -> dict[str, Any]:
        """Return the options of a source that reads a sub-folder of ``files``."""
        return {
            "url": f"sftp://{self.user}@127.0.0.1:{self.port}{self.files}/{folder}",
            "known_hosts": str(self.known_hosts),
            "key_file": str(self.key_file),
            "settle_seconds": 0,
        } | more
